// The broker's own accept rate: one member's socket with many sends in flight, and no daemon in between. Orders name the
// home whose member connects. Answers are counted; anything but an acceptance ends the run.
import { randomBytes } from "node:crypto";
import { withBroker } from "@claudemesh/client/broker";
import { meshPaths, readMeshConfig } from "@claudemesh/client/home";
import { identityOf, readKeyFile } from "@claudemesh/client/keys";
import { createUlidGenerator } from "@claudemesh/protocol/ids";
import { serveOrders } from "../processes/orders.ts";

export type SocketOrder = {
  readonly home: string;
  readonly mesh: string;
  readonly topic: string;
  readonly body: string;
  readonly inFlight: number;
  readonly durationMs: number;
};

export type SocketResult = { readonly accepted: number; readonly perSecond: number };

async function sendOverSocket(order: SocketOrder): Promise<SocketResult> {
  const paths = meshPaths(order.home, order.mesh);
  const { id, broker } = readMeshConfig(paths);
  const identity = identityOf(readKeyFile(paths.keypair), id);
  const nextId = createUlidGenerator({ nowMs: Date.now, randomBytes });
  return withBroker({ broker, identity, agent: "claudemesh-bench" }, async (call) => {
    const startedAtMs = performance.now();
    let accepted = 0;
    const sender = async () => {
      while (performance.now() - startedAtMs < order.durationMs) {
        const destination = { kind: "topic", ref: order.topic };
        await call("send", { client_message_id: nextId(), destination, body: order.body });
        accepted++;
      }
    };
    await Promise.all(Array.from({ length: order.inFlight }, sender));
    return { accepted, perSecond: accepted / ((performance.now() - startedAtMs) / 1_000) };
  });
}

serveOrders<SocketOrder, SocketResult>(sendOverSocket);

// The process that holds many members' sockets open: they acknowledge what is pushed to them, as daemons do, and nothing
// else. One of them may send, and it hears how long it took until the last acknowledgement was answered.
import type { MemberKeys } from "@claudemesh/client/keys";
import { createClientIds } from "../load/client-ids.ts";
import { serveOrders } from "../processes/orders.ts";
import { benchBody, benchTopic } from "./bench-meshes.ts";
import { MemberSocket } from "./member-socket.ts";

export type SocketsOrder =
  /** One socket for each member, again from the first one until there are so many. */
  | {
      readonly do: "connect";
      readonly url: string;
      readonly meshId: string;
      readonly members: readonly MemberKeys[];
      readonly count: number;
    }
  /** One message to the topic; `receivers` acknowledgements are waited for. */
  | {
      readonly do: "fan_out";
      readonly url: string;
      readonly meshId: string;
      readonly sender: MemberKeys;
      readonly receivers: number;
    }
  | { readonly do: "close" };

export type SocketsResult = { readonly open: number; readonly acceptedMs?: number; readonly lastAckMs?: number };

const connectingAtOnce = 32;
const sockets: MemberSocket[] = [];
const nextId = createClientIds("time_ordered");
let onAck: () => void = () => undefined;
const failed = (what: string) => {
  throw new Error(`a socket that should stay gave ${what}`);
};

async function connect(order: Extract<SocketsOrder, { do: "connect" }>): Promise<SocketsResult> {
  const { url, meshId, members, count } = order;
  let next = sockets.length;
  const connecting = Array.from({ length: connectingAtOnce }, async () => {
    for (let at = next++; at < count; at = next++) {
      const keys = members[at % members.length];
      if (keys === undefined) throw new Error("sockets need a member");
      const opened = await MemberSocket.open(
        {
          url,
          meshId,
          keys,
          kind: "daemon",
          onPush: (push) => {
            if (push.type !== "message") return;
            opened.request(`"ack","history_ids":[${push.history_id}]}`, () => onAck());
          },
        },
        failed,
      );
      sockets.push(opened);
    }
  });
  await Promise.all(connecting);
  return { open: sockets.length };
}

async function fanOut({ url, meshId, sender, receivers }: Extract<SocketsOrder, { do: "fan_out" }>) {
  const sending = await MemberSocket.open({ url, meshId, keys: sender, kind: "client" }, failed);
  const { promise: allAcked, resolve } = Promise.withResolvers<void>();
  let acked = 0;
  onAck = () => {
    acked += 1;
    if (acked === receivers) resolve();
  };
  const startedAtMs = performance.now();
  const fields = { client_message_id: nextId(), destination: { kind: "topic", ref: benchTopic }, body: benchBody };
  const acceptedMs = await new Promise<number>((accepted, reject) => {
    sending.request(`"send",${JSON.stringify(fields).slice(1)}`, (status, text) => {
      if (status === 201) accepted(performance.now() - startedAtMs);
      else reject(new Error(text));
    });
  });
  await allAcked;
  const lastAckMs = performance.now() - startedAtMs;
  sending.close();
  return { open: sockets.length, acceptedMs, lastAckMs };
}

serveOrders<SocketsOrder, SocketsResult>((order) => {
  if (order.do === "connect") return connect(order);
  if (order.do === "fan_out") return fanOut(order);
  for (const socket of sockets.splice(0)) socket.close();
  return { open: 0 };
});

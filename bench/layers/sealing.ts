// Sealing alone: one direct message after the other, each with an id of its own, through the product's own sealer.
import { generateMemberKeys } from "@claudemesh/client/keys";
import { loadSealer } from "@claudemesh/client/seal";
import { createClientIds } from "../load/client-ids.ts";
import { Latencies, type LatencyFigures } from "../load/latencies.ts";
import { serveOrders } from "../processes/orders.ts";

export type SealOrder = { readonly durationMs: number; readonly bodyBytes: number };
export type SealResult = LatencyFigures & { readonly perSecond: number };

async function measureSealing(order: SealOrder): Promise<SealResult> {
  const sealer = await loadSealer(generateMemberKeys());
  const recipient = generateMemberKeys().ed25519.public_key;
  const nextId = createClientIds("time_ordered");
  const requestFingerprint = new Uint8Array(32).fill(0xa5);
  const content = {
    recipient,
    replyToId: undefined,
    priority: "next",
    fromAgent: undefined,
    toAgent: undefined,
    canonicalMeta: "",
    body: new Uint8Array(order.bodyBytes).fill(0x6d),
  } as const;
  const times = new Latencies();
  let busyMs = 0;
  while (busyMs < order.durationMs) {
    const clientMessageId = nextId();
    const startedAtMs = performance.now();
    sealer.seal({ content: { ...content, clientMessageId }, requestFingerprint });
    const elapsedMs = performance.now() - startedAtMs;
    times.add(elapsedMs);
    busyMs += elapsedMs;
  }
  return { perSecond: times.count / (busyMs / 1_000), ...times.figures() };
}

serveOrders<SealOrder, SealResult>(measureSealing);

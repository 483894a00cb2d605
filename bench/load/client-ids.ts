// Client ids as senders make them: in the order of time, or at random. Both have the length of a ULID, so that what
// differs between two runs is the order alone.
import { randomBytes, randomUUID } from "node:crypto";
import { createUlidGenerator } from "@claudemesh/protocol/ids";

export type IdOrder = "time_ordered" | "random";

export const clientIdCharacters = 26;

export function createClientIds(order: IdOrder): () => string {
  if (order === "time_ordered") return createUlidGenerator({ nowMs: Date.now, randomBytes });
  return () => randomUUID().replaceAll("-", "").slice(0, clientIdCharacters);
}

// Node's SHA-256 behind the protocol's port. The one-shot call costs a third of a hash object for short inputs, and
// asked for hex it allocates no memory outside the heap, which costs more than the digits do.
import { hash } from "node:crypto";
import type { Sha256 } from "@claudemesh/protocol/messages/fingerprint";

export const nodeSha256: Sha256 = {
  bytes: (data) => Buffer.from(hash("sha256", data, "hex"), "hex"),
  hex: (data) => hash("sha256", data, "hex"),
};

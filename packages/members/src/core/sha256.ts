// SHA-256 as Node has it, for the digests of the protocol.
import { hash } from "node:crypto";
import type { Sha256 } from "@claudemesh/protocol/messages/fingerprint";

export const sha256: Sha256 = {
  // As text and back: memory of its own for 32 bytes takes longer than the digest.
  bytes: (data) => Buffer.from(hash("sha256", data, "binary"), "binary"),
  hex: (data) => hash("sha256", data, "hex"),
};

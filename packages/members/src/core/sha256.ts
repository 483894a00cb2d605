// SHA-256 as Node has it, for the digests of the protocol.
import { hash } from "node:crypto";
import type { Sha256 } from "@claudemesh/protocol/messages/fingerprint";

export const sha256: Sha256 = {
  bytes: (data) => hash("sha256", data, "buffer"),
  hex: (data) => hash("sha256", data, "hex"),
};

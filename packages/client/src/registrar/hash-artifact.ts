// The identity of an artifact: SHA-256 over its bytes, read in pieces, so that its size does not matter.
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";

/** 64 lower-case hex digits. */
export async function hashArtifact(path: string): Promise<string> {
  const hash = createHash("sha256");
  for await (const piece of createReadStream(path)) hash.update(piece as Buffer);
  return hash.digest("hex");
}

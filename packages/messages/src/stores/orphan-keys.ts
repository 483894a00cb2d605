// The key of a row as people read it.
import type { OrphanCursor } from "../ports/orphans.ts";

export function keyText(key: OrphanCursor): string {
  return key.map((part) => (part instanceof Uint8Array ? Buffer.from(part).toString("hex") : String(part))).join("/");
}

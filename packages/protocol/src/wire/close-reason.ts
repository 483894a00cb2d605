// The text of a WebSocket's close frame, which says why in the words of whoever closes.
import { utf8Length } from "../encoding/utf8.ts";

/** A close frame holds no more beside its code. */
const closeReasonBytes = 123;

/** As much of the text as fits, in whole characters: half of one would make the frame itself a broken one. */
export function closeReason(text: string): string {
  if (utf8Length(text) <= closeReasonBytes) return text;
  let kept = "";
  let bytes = 0;
  for (const character of text.slice(0, closeReasonBytes)) {
    bytes += utf8Length(character);
    if (bytes > closeReasonBytes) break;
    kept += character;
  }
  return kept;
}

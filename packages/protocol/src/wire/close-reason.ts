// The text of a WebSocket's close frame, with which the closing side says why it closes.
import { utf8Length } from "../encoding/utf8.ts";

/** A close frame holds at most this many bytes beside its code. */
const closeReasonBytes = 123;

/** As much of the text as fits, in whole characters: half a character would make the frame itself invalid. */
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

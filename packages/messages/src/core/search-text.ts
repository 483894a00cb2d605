// Which part of a message's body is found by search: clear text, up to a length.
import { textOf } from "@claudemesh/protocol/wire/history-item";

/** Of one message; a longer text is found by its beginning. */
export const bytesPerMessage = 65_536;

/** Of a body that is cut after bytesPerMessage, maybe through a character. Undefined where the bytes are no text. */
export function clearText(body: Uint8Array): string | undefined {
  const cuts = body.length < bytesPerMessage ? [0] : [0, 1, 2, 3];
  for (const cut of cuts) {
    const text = textOf(body.subarray(0, body.length - cut));
    if (text !== undefined) return text;
  }
  return undefined;
}

// Base64 (RFC 4648, section 4) of message bodies, strict: a text is accepted only if encoding its bytes gives the same
// text again, so that no two texts stand for one body. Where the runtime has Node's Buffer, long inputs go through it,
// because it is several times faster than a table; the results are the same.
import { countPadding, decodeBase64WithTable, encodeBase64WithTable } from "./base64-table.ts";

/** The few methods of Node's Buffer that are used here. */
interface BufferPort {
  from(memory: ArrayBufferLike, byteOffset: number, byteLength: number): BufferView;
}
interface BufferView {
  toString(encoding: "base64"): string;
  write(text: string, encoding: "base64"): void;
}

const platformBuffer = (globalThis as { Buffer?: BufferPort }).Buffer;

/** Below this many characters, calling the platform costs more than using the table. */
const PLATFORM_DECODE_LENGTH = 512;

export function encodeBase64(bytes: Uint8Array): string {
  if (platformBuffer === undefined) return encodeBase64WithTable(bytes);
  return platformBuffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
}

/** Undefined for anything but canonical base64: wrong or missing padding, stray bits, other characters, whitespace. */
export function decodeBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  if (platformBuffer === undefined || text.length < PLATFORM_DECODE_LENGTH) return decodeBase64WithTable(text);
  if (text.length % 4 !== 0) return undefined;
  const bytes = new Uint8Array((text.length / 4) * 3 - countPadding(text));
  const view = platformBuffer.from(bytes.buffer, 0, bytes.length);
  // Buffer skips characters that it does not know, so encoding the bytes again is the proof.
  view.write(text, "base64");
  return view.toString("base64") === text ? bytes : undefined;
}

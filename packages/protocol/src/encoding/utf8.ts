// Text as UTF-8 bytes. Where the runtime has Node's Buffer, short texts use memory that is allocated already; a
// TextEncoder allocates and frees memory for each text. Half a surrogate pair becomes the replacement character in
// both.

/** The few methods of Node's Buffer that are used here. */
interface BufferPort {
  from(text: string, encoding: "utf8"): Uint8Array<ArrayBuffer>;
  byteLength(text: string, encoding: "utf8"): number;
}

const platformBuffer = (globalThis as { Buffer?: BufferPort }).Buffer;
const encoder = new TextEncoder();

/** The bytes may be a part of a larger buffer: code that uses their `buffer` must respect `byteOffset`. */
export function encodeUtf8(text: string): Uint8Array<ArrayBuffer> {
  if (platformBuffer === undefined) return encoder.encode(text);
  const { buffer, byteOffset, byteLength } = platformBuffer.from(text, "utf8");
  return new Uint8Array(buffer, byteOffset, byteLength);
}

export function utf8Length(text: string): number {
  return platformBuffer?.byteLength(text, "utf8") ?? encoder.encode(text).length;
}

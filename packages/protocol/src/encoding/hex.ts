// Bytes as lower-case hex and back. Capitals are refused: hex is used in ids and addresses that are compared as text,
// where two spellings of one key would count as two keys.

const BYTE_TEXTS: readonly string[] = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

export function encodeHex(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += BYTE_TEXTS[byte];
  return text;
}

/** Undefined when the text is not an even number of lower-case hex digits. */
export function decodeHex(text: string): Uint8Array<ArrayBuffer> | undefined {
  if (text.length % 2 !== 0) return undefined;
  const bytes = new Uint8Array(text.length / 2);
  for (let index = 0; index < bytes.length; index += 1) {
    const high = digitValue(text.charCodeAt(index * 2));
    const low = digitValue(text.charCodeAt(index * 2 + 1));
    if (high < 0 || low < 0) return undefined;
    bytes[index] = (high << 4) | low;
  }
  return bytes;
}

function digitValue(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  if (code >= 0x61 && code <= 0x66) return code - 0x61 + 10;
  return -1;
}

// Arrays as statement parameters in the server's binary format. The driver spells an array as one text, escaped by one
// side and parsed by the other; a Buffer it passes on as it is.

const uuidBytes = 16;
const dash = 0x2d;
const textOid = 25;
const int4Oid = 23;
const float8Oid = 701;
const uuidOid = 2950;

/** Dimensions, whether there are nulls, the type of the elements; then for the one dimension its length and first index. */
const headerBytes = 20;
const lengthBytes = 4;

export function textArray(values: readonly (string | null)[]): Buffer {
  let bytes = 0;
  for (const value of values) if (value !== null) bytes += Buffer.byteLength(value);
  const array = startArray(textOid, values, bytes);
  let at = headerBytes;
  for (const value of values) {
    const length = value === null ? -1 : array.write(value, at + lengthBytes);
    array.writeInt32BE(length, at);
    at += lengthBytes + Math.max(0, length);
  }
  return array;
}

export function int4Array(values: readonly number[]): Buffer {
  return fixedArray(int4Oid, values, 4, (array, value, at) => array.writeInt32BE(value, at));
}

export function float8Array(values: readonly (number | null)[]): Buffer {
  return fixedArray(float8Oid, values, 8, (array, value, at) => array.writeDoubleBE(value, at));
}

export function uuidArray(values: readonly string[]): Buffer {
  return fixedArray(uuidOid, values, uuidBytes, writeUuid);
}

function fixedArray<Value>(
  oid: number,
  values: readonly (Value | null)[],
  elementBytes: number,
  write: (array: Buffer, value: Value, at: number) => void,
): Buffer {
  const array = startArray(oid, values, values.length * elementBytes);
  let at = headerBytes;
  for (const value of values) {
    array.writeInt32BE(value === null ? -1 : elementBytes, at);
    at += lengthBytes;
    if (value === null) continue;
    write(array, value, at);
    at += elementBytes;
  }
  return array.subarray(0, at);
}

function startArray(oid: number, values: readonly unknown[], elementBytes: number): Buffer {
  const array = Buffer.allocUnsafe(headerBytes + values.length * lengthBytes + elementBytes);
  array.writeInt32BE(1, 0);
  array.writeInt32BE(values.includes(null) ? 1 : 0, 4);
  array.writeInt32BE(oid, 8);
  array.writeInt32BE(values.length, 12);
  array.writeInt32BE(1, 16);
  return array;
}

function writeUuid(array: Buffer, text: string, at: number): void {
  let from = 0;
  for (let byte = 0; byte < uuidBytes; byte += 1) {
    if (text.charCodeAt(from) === dash) from += 1;
    array[at + byte] = nibble(text.charCodeAt(from)) * 16 + nibble(text.charCodeAt(from + 1));
    from += 2;
  }
  if (from !== text.length) throw new Error(`${text} is no UUID`);
}

function nibble(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const letter = code | 0x20;
  if (letter >= 0x61 && letter <= 0x66) return letter - 0x57;
  throw new Error("a UUID is written in hexadecimal digits");
}

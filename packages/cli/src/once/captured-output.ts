// What is kept of a command's output: its beginning and its end, with a mark between them that says how much is left
// out. Bounded before it is known how much comes, so that a command that prints for hours costs no more than one line.
import { textOf } from "@claudemesh/protocol/wire/history-item";

/** Two streams of this size fit a result of 64 KiB, in base64 too. */
export const capturedBytes = { head: 8_000, tail: 16_000 } as const;
/** A text that takes more as JSON, because of what has to be escaped in it, is kept as base64 instead. */
const jsonBytesMax = 32_000;

export type CapturedOutput = {
  /** With the mark in it where something is left out. */
  readonly bytes: Buffer;
  readonly leftOutBytes: number;
};

export class OutputCapture {
  #head = Buffer.alloc(0);
  #tail = Buffer.alloc(0);
  #total = 0;

  push(chunk: Buffer): void {
    this.#total += chunk.length;
    const room = capturedBytes.head - this.#head.length;
    if (room > 0) this.#head = Buffer.concat([this.#head, chunk.subarray(0, room)]);
    if (chunk.length <= room) return;
    const rest = chunk.subarray(Math.max(0, room));
    this.#tail = Buffer.concat([this.#tail, rest]).subarray(-capturedBytes.tail);
  }

  finish(): CapturedOutput {
    if (this.#head.length + this.#tail.length === this.#total) {
      return { bytes: Buffer.concat([this.#head, this.#tail]), leftOutBytes: 0 };
    }
    const head = withoutCutEnd(this.#head);
    const tail = withoutCutStart(this.#tail);
    const leftOutBytes = this.#total - head.length - tail.length;
    const mark = Buffer.from(`\n[claudemesh: ${leftOutBytes} bytes are left out here]\n`);
    return { bytes: Buffer.concat([head, mark, tail]), leftOutBytes };
  }
}

/** As fields of a result: text where it is text, else base64. */
export function outputFields(name: "stdout" | "stderr", output: CapturedOutput): Record<string, string | number> {
  const text = textOf(output.bytes);
  const fits = text !== undefined && Buffer.byteLength(JSON.stringify(text)) <= jsonBytesMax;
  return {
    ...(fits ? { [name]: text } : { [`${name}_base64`]: output.bytes.toString("base64") }),
    ...(output.leftOutBytes === 0 ? {} : { [`${name}_left_out_bytes`]: output.leftOutBytes }),
  };
}

export function outputBytes(name: "stdout" | "stderr", result: Readonly<Record<string, unknown>>): Buffer {
  const { [name]: text, [`${name}_base64`]: base64 } = result;
  if (typeof base64 === "string") return Buffer.from(base64, "base64");
  return Buffer.from(typeof text === "string" ? text : "");
}

const isContinuation = (byte: number | undefined) => byte !== undefined && (byte & 0xc0) === 0x80;
const charactersBytesMax = 4;

/** A cut may go through a character of several bytes; what is left of it goes too. */
function withoutCutEnd(bytes: Buffer): Buffer {
  for (let back = 1; back < charactersBytesMax && back <= bytes.length; back++) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (isContinuation(byte)) continue;
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return length > back ? bytes.subarray(0, bytes.length - back) : bytes;
  }
  return bytes;
}

function withoutCutStart(bytes: Buffer): Buffer {
  let start = 0;
  while (start < charactersBytesMax - 1 && isContinuation(bytes[start])) start++;
  return bytes.subarray(start);
}

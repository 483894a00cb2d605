// A reader that follows the RFC 8259 grammar character by character: it builds the value, or says what is wrong with
// the text, where, and at which path. It reports the first error in reading order, so that equal input is refused alike
// everywhere. strict-json.ts uses it whenever its faster way cannot prove the text good. An explicit stack keeps deep
// input from overflowing the call stack.

export type JsonValue = null | boolean | number | string | JsonValue[] | JsonObject;

export interface JsonObject {
  [key: string]: JsonValue;
}

export interface JsonOffence {
  readonly reason: "invalid_json" | "too_deep" | "duplicate_key" | "lone_surrogate" | "number_out_of_range";
  /** UTF-16 code units from the start of the text. */
  readonly offset: number;
  /** Keys and indexes from the root to the member being read. */
  readonly path: readonly (string | number)[];
}

export type GrammarReading =
  | { readonly value: JsonValue; readonly offence?: undefined }
  | { readonly offence: JsonOffence };

/** An open array or object; `at` is the key of the member being read, and undefined between members. */
type Frame = { readonly items: JsonValue[] } | { readonly record: JsonObject; at: string | undefined };

const QUOTE = 0x22;
const PLUS = 0x2b;
const COMMA = 0x2c;
const MINUS = 0x2d;
const POINT = 0x2e;
const ZERO = 0x30;
const NINE = 0x39;
const COLON = 0x3a;
const OPEN_ARRAY = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_ARRAY = 0x5d;
const LETTER_E = 0x65;
const LETTER_U = 0x75;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

class Offended extends Error {
  readonly offence: JsonOffence;
  constructor(offence: JsonOffence) {
    super(offence.reason);
    this.offence = offence;
  }
}

export function readByGrammar(text: string, maxDepth: number): GrammarReading {
  try {
    return { value: new GrammarReader(text, maxDepth).read() };
  } catch (error) {
    if (error instanceof Offended) return { offence: error.offence };
    throw error;
  }
}

class GrammarReader {
  readonly #text: string;
  readonly #maxDepth: number;
  readonly #frames: Frame[] = [];
  #position = 0;

  constructor(text: string, maxDepth: number) {
    this.#text = text;
    this.#maxDepth = maxDepth;
  }

  read(): JsonValue {
    for (;;) {
      let value = this.#beginValue();
      // A complete value goes into its container, which may thereby be complete too, and so on outwards.
      while (value !== undefined) {
        const frame = this.#frames.at(-1);
        if (frame === undefined) return this.#finish(value);
        addToFrame(frame, value);
        value = this.#endMember(frame);
      }
    }
  }

  #finish(value: JsonValue): JsonValue {
    this.#skipSpace();
    if (this.#position !== this.#text.length) this.#fail("invalid_json");
    return value;
  }

  /** A complete scalar or empty container; undefined when a container was opened and its first member follows. */
  #beginValue(): JsonValue | undefined {
    const code = this.#skipSpace();
    if (code === QUOTE) return this.#readString();
    if (code !== OPEN_OBJECT && code !== OPEN_ARRAY) return this.#readWordOrNumber();
    if (this.#frames.length >= this.#maxDepth) this.#fail("too_deep");
    this.#position += 1;
    const frame: Frame = code === OPEN_OBJECT ? { record: {}, at: undefined } : { items: [] };
    const isEmpty = this.#skipSpace() === closingCode(frame);
    this.#frames.push(frame);
    if (isEmpty) return this.#close(frame);
    if ("record" in frame) this.#beginMember(frame);
    return undefined;
  }

  /** Called after a member: the container when it ends here, undefined when another member follows. */
  #endMember(frame: Frame): JsonValue | undefined {
    const code = this.#skipSpace();
    if (code === closingCode(frame)) return this.#close(frame);
    if (code !== COMMA) this.#fail("invalid_json");
    this.#position += 1;
    if ("record" in frame) this.#beginMember(frame);
    return undefined;
  }

  #close(frame: Frame): JsonValue {
    this.#position += 1;
    this.#frames.pop();
    return "items" in frame ? frame.items : frame.record;
  }

  #beginMember(frame: { readonly record: JsonObject; at: string | undefined }): void {
    if (this.#skipSpace() !== QUOTE) this.#fail("invalid_json");
    const start = this.#position;
    const key = this.#readString();
    frame.at = key;
    if (Object.hasOwn(frame.record, key)) this.#fail("duplicate_key", start);
    if (this.#skipSpace() !== COLON) this.#fail("invalid_json");
    this.#position += 1;
  }

  /** NaN past the end. */
  #code(): number {
    return this.#text.charCodeAt(this.#position);
  }

  #skipSpace(): number {
    for (;;) {
      const code = this.#code();
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return code;
      this.#position += 1;
    }
  }

  #readWordOrNumber(): JsonValue {
    if (this.#skipsWord("true")) return true;
    if (this.#skipsWord("false")) return false;
    if (this.#skipsWord("null")) return null;
    return this.#readNumber();
  }

  #skipsWord(word: string): boolean {
    if (!this.#text.startsWith(word, this.#position)) return false;
    this.#position += word.length;
    return true;
  }

  #readNumber(): number {
    const start = this.#position;
    if (this.#code() === MINUS) this.#position += 1;
    if (this.#code() === ZERO) this.#position += 1;
    else this.#skipDigits();
    let isInteger = true;
    if (this.#code() === POINT) {
      isInteger = false;
      this.#position += 1;
      this.#skipDigits();
    }
    // Setting the bit 0x20 makes a letter lower-case.
    if ((this.#code() | 0x20) === LETTER_E) {
      isInteger = false;
      this.#position += 1;
      if (this.#code() === PLUS || this.#code() === MINUS) this.#position += 1;
      this.#skipDigits();
    }
    const value = Number(this.#text.slice(start, this.#position));
    if (isInteger ? !Number.isSafeInteger(value) : !Number.isFinite(value)) this.#fail("number_out_of_range", start);
    return value;
  }

  #skipDigits(): void {
    const start = this.#position;
    for (let code = this.#code(); code >= ZERO && code <= NINE; code = this.#code()) this.#position += 1;
    if (this.#position === start) this.#fail("invalid_json");
  }

  /** A surrogate pair must be written in one way, both halves raw or both escaped: a mixed pair has no UTF-8 form. */
  #readString(): string {
    const start = this.#position;
    let hasEscapes = false;
    let high: { offset: number; escaped: boolean } | undefined;
    this.#position += 1;
    for (;;) {
      const offset = this.#position;
      const raw = this.#code();
      if (raw === QUOTE) break;
      // NaN, past the end of the text, fails this comparison too.
      if (!(raw >= 0x20)) this.#fail("invalid_json");
      const escaped = raw === BACKSLASH;
      hasEscapes ||= escaped;
      const code = escaped ? this.#readEscape() : raw;
      if (!escaped) this.#position += 1;
      const isLow = code >= 0xdc00 && code <= 0xdfff;
      const isHigh = code >= 0xd800 && code <= 0xdbff;
      if (high !== undefined && !(isLow && high.escaped === escaped)) this.#fail("lone_surrogate", high.offset);
      if (high === undefined && isLow) this.#fail("lone_surrogate", offset);
      high = isHigh ? { offset, escaped } : undefined;
    }
    if (high !== undefined) this.#fail("lone_surrogate", high.offset);
    this.#position += 1;
    const written = this.#text.slice(start, this.#position);
    // A single string is decoded correctly by every engine.
    return hasEscapes ? JSON.parse(written) : written.slice(1, -1);
  }

  /** Moves past one escape. Only \u can name a surrogate, so the value of the others does not matter. */
  #readEscape(): number {
    const code = this.#text.charCodeAt(this.#position + 1);
    if (code !== LETTER_U) {
      if (Number.isNaN(code) || !'"\\/bfnrt'.includes(String.fromCharCode(code))) this.#fail("invalid_json");
      this.#position += 2;
      return 0;
    }
    const digits = this.#text.slice(this.#position + 2, this.#position + 6);
    if (!/^[0-9a-fA-F]{4}$/.test(digits)) this.#fail("invalid_json");
    this.#position += 6;
    return Number.parseInt(digits, 16);
  }

  #fail(reason: JsonOffence["reason"], offset = this.#position): never {
    const path = this.#frames.flatMap((frame) => ("items" in frame ? frame.items.length : (frame.at ?? [])));
    throw new Offended({ reason, offset, path });
  }
}

function closingCode(frame: Frame): number {
  return "items" in frame ? CLOSE_ARRAY : CLOSE_OBJECT;
}

function addToFrame(frame: Frame, value: JsonValue): void {
  if ("items" in frame) {
    frame.items.push(value);
    return;
  }
  // Defined, not assigned: assigning __proto__ would set the prototype instead of adding a key.
  if (frame.at === "__proto__") {
    Object.defineProperty(frame.record, frame.at, { value, writable: true, enumerable: true, configurable: true });
  } else if (frame.at !== undefined) {
    frame.record[frame.at] = value;
  }
  frame.at = undefined;
}

// How much work a piece of our code does, counted instead of timed: how often the engine entered each block of it, and how
// many characters its own searches looked at. The same input costs the same on every machine, however busy it is.
// Why: docs/decisions/0111.
import { Session } from "node:inspector/promises";
import { expect } from "vitest";

/** Beyond so many characters a regular expression is charged with the worst that backtracking can do. */
const shortText = 256;

export class StepCounter {
  readonly #session = new Session();
  #searched = 0;

  /** Code is counted that is imported after this, and what calls it. */
  static async start(): Promise<StepCounter> {
    const counter = new StepCounter();
    counter.#session.connect();
    await counter.#session.post("Profiler.enable");
    await counter.#session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
    return counter;
  }

  /** The work of all packages' code during `run`. */
  async count(run: () => unknown): Promise<number> {
    await this.#takeCounts();
    this.#searched = 0;
    const restore = this.#chargeSearches();
    try {
      await run();
    } finally {
      restore();
    }
    return (await this.#takeCounts()) + this.#searched;
  }

  async stop(): Promise<void> {
    await this.#session.post("Profiler.stopPreciseCoverage");
    this.#session.disconnect();
  }

  async #takeCounts(): Promise<number> {
    const { result } = await this.#session.post("Profiler.takePreciseCoverage");
    let steps = 0;
    for (const { url, functions } of result) {
      if (!url.includes("/packages/") || url.includes("node_modules")) continue;
      for (const { ranges } of functions) for (const { count } of ranges) steps += count;
    }
    return steps;
  }

  /** The engine's searches are no blocks of ours: a search is charged with what it passed, an expression as above. */
  #chargeSearches(): () => void {
    const charge = (characters: number) => {
      this.#searched += characters;
    };
    const { indexOf, includes } = String.prototype;
    const { exec } = RegExp.prototype;
    String.prototype.indexOf = function (this: string, search, from = 0) {
      const found = indexOf.call(this, search, from);
      charge((found < 0 ? this.length : found) - Math.max(0, from));
      return found;
    };
    String.prototype.includes = function (this: string, search, from) {
      charge(this.length);
      return includes.call(this, search, from);
    };
    // All methods that take an expression call this one, also those of String.
    RegExp.prototype.exec = function (text) {
      charge(text.length <= shortText ? text.length : text.length ** 2);
      return exec.call(this, text);
    };
    return () => {
      String.prototype.indexOf = indexOf;
      String.prototype.includes = includes;
      RegExp.prototype.exec = exec;
    };
  }
}

/** A family of texts, each of about so many characters. */
export type TextFamily = { readonly name: string; readonly ofLength: (characters: number) => string };

const repeated =
  (part: string, head = "", tail = "") =>
  (characters: number) =>
    head + part.repeat(Math.max(1, Math.floor((characters - head.length - tail.length) / part.length))) + tail;

const halves =
  (first: string, second: string, between = "", head = "") =>
  (characters: number) =>
    head +
    first.repeat(Math.floor(characters / 2 / first.length)) +
    between +
    second.repeat(Math.floor(characters / 2 / second.length));

const numbered = (member: (index: number) => string, open: string, close: string) => (characters: number) => {
  const members: string[] = [];
  for (let length = 2; length < characters; ) {
    const next = member(members.length);
    members.push(next);
    length += next.length + 1;
  }
  return open + members.join(",") + close;
};

/** Texts that a reader of JSON might look at more than once: whole documents and broken ones. */
const families: readonly [name: string, ofLength: TextFamily["ofLength"]][] = [
  ["one string", repeated("a", '"', '"')],
  ["a string that does not end", repeated("a", '"')],
  ["strings", repeated('"a",', "[", '"a"]')],
  ["strings that never part", repeated('"a"')],
  ["quotes", repeated('"')],
  ["colons", repeated(":")],
  ["a string and colons behind it", halves("a", ":", '"', '"')],
  ["a string, blanks and colons", halves(" ", ":", "", '"a"')],
  ["members without values", repeated('"a":')],
  ["keys", numbered((index) => `"k${index}":1`, "{", "}")],
  ["keys that are indexes", numbered((index) => `"${index * 1_000}":1`, "{", "}")],
  ["one key again and again", numbered(() => '"k":1', "{", "}")],
  ["keys with an escape", numbered((index) => `"\\u006b${index}":1`, "{", "}")],
  ["one long key", (characters) => `{"${"k".repeat(characters)}":1}`],
  ["escapes", repeated("\\n", '"', '"')],
  ["escaped surrogates", repeated("\\ud83d\\ude00", '"', '"')],
  ["a lone surrogate at the end", repeated("a", '"', '\\ud800"')],
  ["backslashes that do not end", repeated("\\", '"')],
  ["escaped quotes that do not end", repeated('\\"', '"')],
  ["digits", repeated("1")],
  ["numbers", repeated("12,", "[", "1]")],
  ["large numbers", repeated("9007199254740993,", "[", "1]")],
  ["numbers in an exponent's form", repeated("1e5,", "[", "1]")],
  ["dots and digits", repeated("1.")],
  ["minus signs", repeated("-")],
  ["a large number and escaped quotes", halves("1", '\\"', "", "[")],
  ["a large number and quotes", halves("1", '"', "", "[")],
  ["large numbers and open strings", repeated(' 9007199254740993"\\')],
  ["open arrays", repeated("[")],
  ["open objects", repeated('{"a":')],
  ["nested arrays", (characters) => "[".repeat(characters / 2) + "]".repeat(characters / 2)],
  ["blanks", repeated(" ")],
  ["line ends", repeated("\r\n", "[", "]")],
  ["words", repeated("true,", "[", "true]")],
  ["letters", repeated("a")],
  ["letters beyond ASCII", repeated("é", '"', '"')],
  ["a control character at the end", repeated("a", '"', '\u0000"')],
];

export const textFamilies: readonly TextFamily[] = families.map(([name, ofLength]) => ({ name, ofLength }));

/** What does not depend on the text: a connection, a request, a turn of a timer that came between. */
const fixedSteps = 5_000;

/** Sends texts of all families: twice the text costs at most 2.5 times the work. */
export async function expectLinear(counter: StepCounter, send: (text: string) => Promise<unknown>): Promise<void> {
  await send("{}");
  for (const { name, ofLength } of textFamilies) {
    const [text, twice] = [ofLength(4_000), ofLength(8_000)];
    const work = await counter.count(() => send(text));
    expect.soft(await counter.count(() => send(twice)), name).toBeLessThanOrEqual(2.5 * work + fixedSteps);
  }
}

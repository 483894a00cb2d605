// Colour, used sparingly: for states and headings, on a terminal. Text of other people is cleared of escape sequences
// before it is printed, so a colour travels through that clearing as a mark, which holds a word that this process made
// up and no peer can know, and becomes an escape sequence behind it.
import { styleText } from "node:util";
import { currentDisplay } from "./display.ts";

export type Tone = "good" | "waiting" | "bad" | "heading";

const styles: Readonly<Record<Tone, "green" | "yellow" | "red" | "bold">> = {
  good: "green",
  waiting: "yellow",
  bad: "red",
  heading: "bold",
};

const border = "\u{f0000}";
let secret: string | undefined;

/** The text as it is where nothing is coloured. */
export function toned(text: string, tone: Tone | undefined): string {
  if (tone === undefined || text === "" || !currentDisplay().colours) return text;
  secret ??= crypto.randomUUID();
  return `${border}${secret}${tone}${border}${text}${border}${secret}${border}`;
}

/** To be called last, behind `neutralise`. */
export function paint(text: string): string {
  if (secret === undefined) return text;
  const marked = new RegExp(`${border}${secret}([a-z]+)${border}(.*?)${border}${secret}${border}`, "gsu");
  return text.replace(marked, (_, tone: Tone, inner: string) =>
    styleText(styles[tone], inner, { validateStream: false }),
  );
}

const tones: Readonly<Record<string, Tone>> = {
  ...tonesOf("good", "ok done delivered read live online running acked used registered_closed compensated won"),
  ...tonesOf(
    "waiting",
    "pending inflight queued stored waiting leased warn uncertain inert parked connecting dismissed",
  ),
  ...tonesOf("bad", "dead fail failed aborted expired revoked refused verify_failed unreadable"),
};

function tonesOf(tone: Tone, states: string): Record<string, Tone> {
  return Object.fromEntries(states.split(" ").map((state) => [state, tone]));
}

/** Undefined for a word that means neither good nor bad. */
export function toneOf(state: string): Tone | undefined {
  return tones[state.toLowerCase()];
}

// The part of the words check that is about plain English: words that no newcomer should have to guess at. In
// TypeScript it looks at comments, identifiers and the titles of tests, in Markdown at all that is not code.
import { readSourceWords } from "./source-words.ts";

interface PlainBan {
  readonly pattern: RegExp;
  readonly reason: string;
}

const proseBans: readonly PlainBan[] = [
  {
    pattern: /\b(?:who(?:m|so)?ever|(?:no|some|any|every)body(?:'s)?)\b/i,
    reason: 'programs and members are not people: say which one it is, as in "the caller" or "no other member"',
  },
  {
    pattern: /\b(?:he|him|his|himself)\b/i,
    reason: 'a program is "it"; a person is a role, such as the operator or the owner, or "they"',
  },
];

const identifierBans: readonly PlainBan[] = [
  {
    pattern: /^places?$/,
    reason: "a place may be a slot, a cursor, a position, a location or a pair; name which one (docs/glossary.md)",
  },
  { pattern: /^lanes?$/, reason: "what is worked through in order is a queue; what runs beside others is a worker" },
  { pattern: /^told$/, reason: "name what it holds: what was asked, answered, reported or sent" },
  { pattern: /^hands?$/, reason: "what takes work is a worker, a consumer or a slot" },
];

/** What may follow a hand that is a verb, as in `handOver` and `handsOut`. */
const afterVerb = /^(?:back|off|on|out|over)$/;

function nounsOf(identifier: string): string[] {
  const words = Array.from(identifier.matchAll(/[A-Z]?[a-z]+|[A-Z]+(?![a-z])/g), ([word]) => word.toLowerCase());
  return words.filter((word, index) => !(/^hands?$/.test(word) && afterVerb.test(words[index + 1] ?? "")));
}

const lineAt = (source: string, at: number) => source.slice(0, at).split("\n").length;

function* findInSource(source: string): Generator<readonly [line: number, problem: string]> {
  for (const { type, text, at } of readSourceWords(source)) {
    if (type === "identifier") {
      const words = nounsOf(text);
      const ban = [...identifierBans, ...proseBans].find(({ pattern }) => words.some((word) => pattern.test(word)));
      if (ban !== undefined) yield [lineAt(source, at), `"${text}": ${ban.reason}`];
      continue;
    }
    for (const [offset, problem] of findInProse(text)) yield [lineAt(source, at) + offset - 1, problem];
  }
}

function* findInProse(text: string): Generator<readonly [line: number, problem: string]> {
  for (const [index, line] of text.split("\n").entries()) {
    for (const { pattern, reason } of proseBans) {
      const word = pattern.exec(line)?.[0];
      if (word !== undefined) yield [index + 1, `"${word}": ${reason}`];
    }
  }
}

const blank = (text: string) => text.replaceAll(/[^\n]/g, " ");

/** Code in Markdown is shown as it is, with the words of its output: it counts as data. */
const withoutCode = (markdown: string) =>
  markdown.replaceAll(/^( *)(```+)[\s\S]*?^\1\2 *$/gm, blank).replaceAll(/`[^`\n]+`/g, blank);

/** What is not plain in a file, as lines that name the word, where it stands and what to write instead. */
export function findUnplainWords(path: string, text: string): string[] {
  const found = /\.[mc]?[jt]s$/.test(path)
    ? findInSource(text)
    : path.endsWith(".md")
      ? findInProse(withoutCode(text))
      : [];
  return Array.from(found, ([line, problem]) => `${path}:${line} ${problem}`);
}

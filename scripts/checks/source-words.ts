// What a person reads in a TypeScript file: its comments, its identifiers and the titles of its tests. Texts in quotes,
// templates and regular expressions are data and are left out. A scanner of tokens is enough for this, and it needs no
// parser that would have to be installed.

export type SourceWord = {
  readonly type: "comment" | "identifier" | "title";
  readonly text: string;
  /** Where it begins in the source. */
  readonly at: number;
};

const tokens = {
  comment: /\/\/[^\n]*|\/\*[\s\S]*?\*\//y,
  text: /"(?:\\[\s\S]|[^"\\\n])*"|'(?:\\[\s\S]|[^'\\\n])*'/y,
  regex: /\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\/[a-z]*/y,
  word: /[#$\w\u0080-\uffff]+/y,
  other: /\s+|[\s\S]/y,
};
/** From the opening quote or the end of an inserted expression to the next expression or the closing quote. */
const templatePart = /[`}](?:\\[\s\S]|\$(?!\{)|[^`\\$])*(?:`|\$\{)/y;

/** After one of these a slash divides; anywhere else it begins a regular expression. */
const endsValue = /^(?:[)\]}]|["'`].*|(?!(?:return|typeof|case|in|of|else|await|yield|void)$)[#$\w\u0080-\uffff]+)$/s;
const testFunction = /^(?:it|test|describe|suite)$/;

export function* readSourceWords(source: string): Generator<SourceWord> {
  // One entry for each template that is open around the current position: the depth of braces inside its expression.
  const openTemplates: number[] = [];
  let [beforeLast, last] = ["", ""];
  let at = 0;
  const match = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = at;
    return pattern.exec(source)?.[0];
  };
  while (at < source.length) {
    const comment = match(tokens.comment);
    if (comment !== undefined) {
      yield { type: "comment", text: comment, at };
      at += comment.length;
      continue;
    }
    const character = source[at];
    const template =
      character === "`" || (character === "}" && openTemplates.at(-1) === 0) ? match(templatePart) : undefined;
    const text = template ?? match(tokens.text);
    const regex = text === undefined && !endsValue.test(last) ? match(tokens.regex) : undefined;
    const word = text === undefined && regex === undefined ? match(tokens.word) : undefined;
    const token = text ?? regex ?? word ?? match(tokens.other) ?? "";
    if (word !== undefined && !/^\d/.test(word)) yield { type: "identifier", text: word, at };
    if (text !== undefined && last === "(" && (testFunction.test(beforeLast) || beforeLast === ")")) {
      yield { type: "title", text, at };
    }
    if (template !== undefined) {
      if (template.startsWith("}")) openTemplates.pop();
      if (template.endsWith("${")) openTemplates.push(0);
    } else if (openTemplates.length > 0 && (token === "{" || token === "}")) {
      openTemplates.push((openTemplates.pop() ?? 0) + (token === "{" ? 1 : -1));
    }
    if (token.trim() !== "") [beforeLast, last] = [last, token];
    at += token.length;
  }
}

// One question at the terminal, and its answer.
import { createInterface } from "node:readline";

/** Undefined: the input ended without an answer. Ctrl-C ends the process, as it does anywhere else. */
export function askAtTerminal(process: NodeJS.Process, question: string): Promise<string | undefined> {
  process.stderr.write(question);
  const lines = createInterface({ input: process.stdin, terminal: false });
  return new Promise((resolve) => {
    lines.once("line", (line) => {
      resolve(line);
      lines.close();
    });
    lines.once("close", () => resolve(undefined));
  });
}

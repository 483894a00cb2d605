// The name under which the daemon keeps how far an agent has read its mail.
import { createHash } from "node:crypto";
import { basename } from "node:path";

const partCharacters = 24;

/**
 * The same folder and the same agent program are the same reader, so that a restart goes on where the last run ended; two
 * folders of one name are distinguished by their paths.
 */
export function readerNameOf(folder: string, program: string): string {
  const digest = createHash("sha256").update(folder).digest("hex").slice(0, 8);
  return `${namePart(basename(folder), "root")}-${namePart(program, "agent")}-${digest}`;
}

function namePart(text: string, instead: string): string {
  const part = text
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .slice(0, partCharacters)
    .replaceAll(/^-+|-+$/g, "");
  return part === "" ? instead : part;
}

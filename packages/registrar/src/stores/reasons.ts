// A verifier's reasons as one text column: a JSON list of texts.
import { parseOwnJsonText } from "@claudemesh/protocol/json";

export function writeReasons(reasons: readonly string[]): string {
  return JSON.stringify(reasons);
}

export function readReasons(text: string | null): string[] {
  if (text === null || text === "[]") return [];
  const value = parseOwnJsonText(text);
  return Array.isArray(value) ? value.map(String) : [];
}

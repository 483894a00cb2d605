// A shell for tests that remembers what was printed instead of printing it.
import { PassThrough } from "node:stream";
import type { Shell } from "../shell.ts";

export type RecordingShell = Shell & { readonly printed: string[]; readonly complaints: string[] };

export function createRecordingShell(given: Partial<Shell> = {}): RecordingShell {
  const printed: string[] = [];
  const complaints: string[] = [];
  return {
    env: {},
    home: "/nowhere",
    version: "0.0.0-test",
    columns: undefined,
    colours: false,
    ask: undefined,
    raw: () => new PassThrough(),
    readerGone: new Promise(() => undefined),
    ...given,
    out: (text) => printed.push(text),
    err: (text) => complaints.push(text),
    printed,
    complaints,
  };
}

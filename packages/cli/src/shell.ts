// What a command knows of the world it runs in: environment, streams, home, the person at the terminal. Passed in, so that
// commands are testable and read no globals.

import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { isatty } from "node:tty";
import { chooseMesh, homeDir, type MeshPaths, meshPaths } from "@claudemesh/client/home";
import { wantsColours } from "./output/display.ts";
import { neutralise } from "./output/printable.ts";

export type Shell = {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  readonly version: string;
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
  /** The stream itself, for bytes that are passed on as they are. */
  readonly raw: (name: "stdout" | "stderr") => NodeJS.WritableStream;
  /** Columns of the terminal; undefined when the output is no terminal. */
  readonly columns: number | undefined;
  /** Whether what is printed for people may be coloured. */
  readonly colours: boolean;
  /** Asks the person at the terminal; undefined where there is none. */
  readonly ask: ((question: string) => Promise<string | undefined>) | undefined;
  /** Resolves when the reader of our output has gone. */
  readonly readerGone: Promise<void>;
};

export function createShell(process: NodeJS.Process): Shell {
  return {
    env: process.env,
    home: homeDir(process.env),
    version: readVersion(),
    out: (text) => process.stdout.write(`${text}\n`),
    // The stream is made on first use, and most commands have nothing to say on it.
    err: (text) => {
      // A complaint may quote what another program or a peer has said.
      watchedErrors(process).write(`${neutralise(text)}\n`);
    },
    raw: (name) => (name === "stdout" ? process.stdout : watchedErrors(process)),
    // A terminal that does not know its width says 0, and in no columns nothing could be shown.
    columns: (process.stdout.isTTY && process.stdout.columns) || undefined,
    colours: wantsColours(process.env, process.stdout.isTTY),
    // Looked at by few commands, and looking at the stream itself would open it for all.
    get ask() {
      return isatty(0) && isatty(2) ? (question: string) => askAtTerminal(process, question) : undefined;
    },
    readerGone: watchReader(process.stdout, (error) => {
      watchedErrors(process).write(`claudemesh: The output cannot be written: ${error.message}.\n`);
      process.exit(1);
    }),
  };
}

function watchedErrors(process: NodeJS.Process): NodeJS.WriteStream {
  // A full disk behind it must not end a daemon, and there is nowhere left to report it.
  if (process.stderr.listenerCount("error") === 0) void watchReader(process.stderr, () => undefined);
  return process.stderr;
}

/** `claudemesh inbox | head` is no failure, and a daemon outlives the terminal that started it. */
function watchReader(stream: NodeJS.WriteStream, onFailure: (error: Error) => void): Promise<void> {
  return new Promise((resolve) => {
    stream.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "EPIPE") resolve();
      else onFailure(error);
    });
  });
}

function readVersion(): string {
  const { version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as {
    version: string;
  };
  return version;
}

const meshOfCommand = new WeakMap<Shell, MeshPaths>();

/** The files of the mesh that a command is about. */
export function pathsFor(shell: Shell, options: { readonly mesh?: string }): MeshPaths {
  const paths = meshPaths(shell.home, chooseMesh(shell.home, options.mesh, shell.env));
  meshOfCommand.set(shell, paths);
  return paths;
}

/** Undefined where the command is about no mesh, or failed before it chose one. */
export function meshInQuestion(shell: Shell): MeshPaths | undefined {
  return meshOfCommand.get(shell);
}

/** Undefined where the input ended without an answer. Ctrl-C ends the process, as it does anywhere else. */
function askAtTerminal(process: NodeJS.Process, question: string): Promise<string | undefined> {
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

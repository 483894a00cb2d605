// What a command knows of the world it runs in: environment, streams, home. Passed in, so that commands are testable
// and read no globals.
import { readFileSync } from "node:fs";
import { chooseMesh, homeDir, type MeshPaths, meshPaths } from "@claudemesh/client/home";

export type Shell = {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  readonly version: string;
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
  /** Columns of the terminal; undefined when the output is no terminal. */
  readonly columns: number | undefined;
};

export function createShell(process: NodeJS.Process): Shell {
  return {
    env: process.env,
    home: homeDir(process.env),
    version: readVersion(),
    out: (text) => process.stdout.write(`${text}\n`),
    err: (text) => process.stderr.write(`${text}\n`),
    columns: process.stdout.isTTY ? process.stdout.columns : undefined,
  };
}

function readVersion(): string {
  const { version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as {
    version: string;
  };
  return version;
}

/** The files of the mesh that a command is about. */
export function pathsFor(shell: Shell, options: { readonly mesh?: string }): MeshPaths {
  return meshPaths(shell.home, chooseMesh(shell.home, options.mesh));
}

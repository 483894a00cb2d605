// The options that areas declare, and their values. A secret may be given by file or environment, so that it need not
// be on a command line that every user of the machine can read.
import { readFileSync } from "node:fs";
import { CannotBegin } from "./endings.ts";

export type OptionSpec = {
  readonly flag: string;
  /** What the value is, for --help: `<url>`. */
  readonly value: string;
  readonly help: string;
  /** Also read from this environment variable, and from the file that `--<flag>-file` names. */
  readonly secretEnv?: string;
  readonly repeatable?: boolean;
};

export type OptionValues = {
  readonly one: (flag: string) => string | undefined;
  readonly all: (flag: string) => readonly string[];
};

export type GivenOptions = Readonly<Record<string, readonly string[] | undefined>>;

export function readOptions(
  specs: readonly OptionSpec[],
  given: GivenOptions,
  env: Readonly<Record<string, string | undefined>> = {},
): OptionValues {
  const values = new Map<string, readonly string[]>();
  for (const spec of specs) {
    const own = given[spec.flag] ?? [];
    const all =
      own.length > 0 || spec.secretEnv === undefined ? own : readSecret(spec.flag, spec.secretEnv, given, env);
    if (all.length > 1 && spec.repeatable !== true) throw new CannotBegin(`--${spec.flag} is given more than once.`);
    values.set(spec.flag, all);
  }
  return { one: (flag) => values.get(flag)?.[0], all: (flag) => values.get(flag) ?? [] };
}

function readSecret(
  flag: string,
  name: string,
  given: GivenOptions,
  env: Readonly<Record<string, string | undefined>>,
): readonly string[] {
  const file = given[`${flag}-file`]?.[0];
  if (file !== undefined) {
    try {
      return [readFileSync(file, "utf8").trim()];
    } catch (error) {
      throw new CannotBegin(`--${flag}-file: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  const value = env[name];
  return value === undefined || value === "" ? [] : [value];
}

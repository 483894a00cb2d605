// `claudemesh-conformance`: reads the arguments, runs an area, prints, and exits with a code: 0 all that ran passed, 1
// something missed the contract, 2 wrong usage or no server to test.
import { parseArgs } from "node:util";
import { areas } from "./areas.ts";
import { CannotBegin } from "./frame/endings.ts";
import { type GivenOptions, readOptions } from "./frame/options.ts";
import { listText, reportJson, reportText } from "./frame/report.ts";
import { chooseScenarios, isMeant, runArea } from "./frame/run.ts";
import type { Area } from "./frame/scenario.ts";
import { usageOf } from "./usage.ts";

const exitCodes = { passed: 0, missed: 1, cannotBegin: 2 } as const;
const timeoutSecondsDefault = 240;

const generalOptions = {
  help: { type: "boolean" },
  json: { type: "boolean" },
  list: { type: "boolean" },
  only: { type: "string", multiple: true },
  "timeout-s": { type: "string" },
} as const;

type Output = { readonly out: (text: string) => void; readonly err: (text: string) => void };

export async function main(
  argv: readonly string[],
  output: Output = { out: (text) => console.log(text), err: (text) => console.error(text) },
  known: readonly Area[] = areas,
): Promise<number> {
  try {
    return await run(argv, output, known);
  } catch (error) {
    if (!(error instanceof CannotBegin)) throw error;
    if (argv.includes("--json")) {
      output.out(JSON.stringify({ error: "cannot_begin", message: error.message, retryable: false }));
    } else {
      output.err(error.message);
    }
    return exitCodes.cannotBegin;
  }
}

async function run(argv: readonly string[], { out }: Output, known: readonly Area[]): Promise<number> {
  const [name, ...words] = argv;
  if (name === undefined || name === "--help" || name === "help") {
    out(usageOf(known));
    return name === undefined ? exitCodes.cannotBegin : exitCodes.passed;
  }
  const area = known.find((each) => each.name === name);
  if (area === undefined) throw new CannotBegin(`There is no area ${name}.\n\n${usageOf(known)}`);
  const values = parseWords(area, words);
  const flag = (wanted: keyof typeof generalOptions) => values[wanted]?.[0] === "true";
  if (flag("help")) {
    out(usageOf([area]));
    return exitCodes.passed;
  }
  const chosen = chooseScenarios(area, readOnly(area, values.only ?? []));
  if (flag("list")) {
    const infos = chosen.map(({ id, section, says }) => ({ id, section, says }));
    out(flag("json") ? JSON.stringify({ area: area.name, scenarios: infos }) : listText(infos));
    return exitCodes.passed;
  }
  const timeoutMs = readTimeoutMs(values["timeout-s"]?.[0]);
  const results = await runArea(area, { values: readOptions(area.options, values, process.env), chosen, timeoutMs });
  out(flag("json") ? JSON.stringify(reportJson(area, results)) : reportText(area, results));
  return results.some(({ outcome }) => outcome === "failed") ? exitCodes.missed : exitCodes.passed;
}

function parseWords(area: Area, words: readonly string[]): GivenOptions {
  const own = area.options.flatMap(({ flag, secretEnv }) =>
    secretEnv === undefined ? [flag] : [flag, `${flag}-file`],
  );
  const declared = Object.fromEntries(own.map((flag) => [flag, { type: "string", multiple: true } as const]));
  try {
    const { values } = parseArgs({ args: [...words], options: { ...declared, ...generalOptions }, strict: true });
    return Object.fromEntries(
      Object.entries(values).map(([flag, value]) => [flag, Array.isArray(value) ? value.map(String) : [String(value)]]),
    );
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw new CannotBegin(`${error.message}\n\n${usageOf([area])}`);
  }
}

function readOnly(area: Area, given: readonly string[]): readonly string[] {
  const only = given.flatMap((each) => each.split(",")).filter((each) => each !== "");
  const unknown = only.find((wanted) => !area.scenarios.some((each) => isMeant(each, wanted)));
  if (unknown === undefined) return only;
  throw new CannotBegin(`--only ${unknown}: no section and no scenario of ${area.name} is called so; see --list.`);
}

function readTimeoutMs(given: string | undefined): number {
  if (given === undefined) return timeoutSecondsDefault * 1000;
  if (/^[1-9][0-9]{0,4}$/.test(given)) return Number(given) * 1000;
  throw new CannotBegin("--timeout-s takes a whole number of seconds from 1.");
}

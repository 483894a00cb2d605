// The text of --help, made of the options that the areas declare.
import type { OptionSpec } from "./frame/options.ts";
import type { Area } from "./frame/scenario.ts";

const general: readonly (readonly [string, string])[] = [
  ["--only <section|id>", "these alone; a section stands for those below it; repeatable, or separated by commas"],
  ["--list", "say which scenarios there are, and run none"],
  ["--json", "one JSON value instead of a table"],
  ["--timeout-s <n>", "the bound of one scenario; 240 where nothing is said"],
  ["--help", "this"],
];

export function usageOf(areas: readonly Area[]): string {
  const [only] = areas.length === 1 ? areas : [];
  const lines = [
    `Usage: claudemesh-conformance ${only?.name ?? areas.map(({ name }) => name).join("|")} --url <url> [options]`,
    "",
    "Tries an implementation of the claudemesh contract over its public API and says, by section, what it keeps.",
    "It writes to what it tries: use a mesh and a home that are made for it.",
  ];
  for (const area of areas) lines.push("", `${area.name}: ${area.summary}`, ...area.options.flatMap(describe));
  lines.push("", "All areas:", ...general.map(([flag, help]) => line(flag, help)));
  lines.push(
    "",
    "Examples:",
    "  claudemesh-conformance broker --url http://127.0.0.1:7600 --admin-token-file ./broker.db.admin-token",
    "  claudemesh-conformance broker --url http://127.0.0.1:7600 --mesh acme --owner-token-file ./token --only 1.5 --json",
    "  claudemesh-conformance daemon --socket ~/.claudemesh/daemon/acme/sock",
    "  claudemesh-conformance spaces --url http://127.0.0.1:7600 --admin-token-file ./broker.db.admin-token --only 3.3",
    "  claudemesh-conformance daemon --list",
    "",
    "Exit codes: 0 everything that ran passed · 1 something missed the contract · 2 wrong usage, or nothing answers there",
  );
  return lines.join("\n");
}

function describe({ flag, value, help, secretEnv, repeatable }: OptionSpec): string[] {
  const notes = [
    help,
    ...(repeatable === true ? ["repeatable"] : []),
    ...(secretEnv === undefined ? [] : [`or ${secretEnv}`]),
  ];
  const file = secretEnv === undefined ? [] : [line(`--${flag}-file <path>`, "the same, from a file")];
  return [line(`--${flag} ${value}`, notes.join("; ")), ...file];
}

function line(flag: string, help: string): string {
  return `  ${flag.padEnd(30)} ${help}`;
}

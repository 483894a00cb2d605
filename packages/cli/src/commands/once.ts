// `claudemesh once …`: a command that runs at most once for all members of a mesh, and the keys under which that is
// kept.
// Why: docs/decisions/0016.

import type { BrokerCall } from "@claudemesh/client/broker";
import type { OnceItem } from "@claudemesh/client/daemon";
import type { MeshPaths } from "@claudemesh/client/home";
import { createOnce } from "@claudemesh/client/once";
import { MeshError } from "@claudemesh/protocol/errors";
import { type JsonValue, parseStrictJsonText, StrictJsonError } from "@claudemesh/protocol/json";
import { onceLimits } from "@claudemesh/protocol/registrar/once-limits";
import { type Command, InvalidArgumentError, Option } from "commander";
import { type Commands, type CommonOptions, examples, type Outcome, run, withMesh, withTimes } from "../command.ts";
import { hint } from "../hints.ts";
import { parseCount, parseWait } from "../input/arguments.ts";
import { type Confirmable, confirm, withYes } from "../input/confirm.ts";
import { asMember, readNames } from "../mesh/member.ts";
import { readMeshList } from "../mesh/mesh-lists.ts";
import { outputBytes } from "../once/captured-output.ts";
import { type CommandResult, canBeFound, runCommand } from "../once/run-command.ts";
import type { NameOf } from "../output/members.ts";
import { jsonText, neutralise } from "../output/printable.ts";
import { formatTable, stateCell } from "../output/table.ts";
import { formatTime, timeCell } from "../output/times.ts";
import { pathsFor, type Shell } from "../shell.ts";

export const commands = {
  once: defineOnce,
  "once list": defineList,
} satisfies Commands;

type OnceOptions = Confirmable & {
  readonly mesh?: string;
  readonly json?: boolean;
  readonly wait?: boolean;
  readonly lease: number;
  readonly show?: boolean;
  readonly resolve?: "done" | "not-done";
  readonly epoch?: number;
  readonly result?: { readonly value: JsonValue };
};

const exitCodeHelp = `
The exit code is the command's, now or when it ran. Where there is none to give: 1 the command's end could not be
recorded, 2 wrong usage, 3 the broker cannot be reached, 4 the key is running elsewhere (--no-wait), uncertain, or was
used for another command, 5 there is no such command.`;

/**
 * Runs a command at most once for all members of a mesh, and gives each later caller what it printed and how
 * it ended. Also shows a key and resolves one that is uncertain, by options, so that no word is taken from the keys.
 */
function defineOnce(command: Command, shell: Shell): void {
  withYes(withTimes(withMesh(command)))
    .argument("<key>", "names the effect: 1–128 printable characters without spaces")
    .argument("[command...]", "what to run, after --; its words are the inputs of the key")
    .option("--wait", "wait while another host runs it (the default)")
    .option("--no-wait", "fail instead of waiting")
    .addOption(
      new Option("--lease <time>", "how long the key stays held when nothing is heard from here")
        .argParser(parseLease)
        .default(onceLimits.leaseSecondsDefault, `${onceLimits.leaseSecondsDefault}s`),
    )
    .option("--show", "show the key and its epochs instead of running anything")
    .addOption(new Option("--resolve <outcome>", "say what became of an uncertain epoch").choices(["done", "not-done"]))
    .option("--epoch <n>", "the epoch to resolve", parseCount)
    .option("--result <json>", "with --resolve done: the result that later callers get", parseResult)
    .action((key: string, words: readonly string[], options: OnceOptions) => {
      checkUsage(command, words, options);
      return run(shell, options, () => runShowOrResolve(shell, key, words, options));
    });
  examples(
    command,
    "claudemesh once deploy-2024-05-02 -- make deploy",
    "claudemesh once nightly --no-wait --lease 5m --json -- ./backup.sh --full",
    "claudemesh once deploy-2024-05-02 --show",
    "claudemesh once deploy-2024-05-02 --resolve not-done --epoch 1",
  );
  command.addHelpText("after", exitCodeHelp);
}

function parseLease(text: string): number {
  const seconds = Math.ceil(parseWait(text) / 1000);
  if (seconds <= onceLimits.leaseSecondsMax) return seconds;
  throw new InvalidArgumentError("A lease is at most 12h; it is renewed while the command runs.");
}

function parseResult(text: string): { readonly value: JsonValue } {
  try {
    return { value: parseStrictJsonText(text, { maxDepth: onceLimits.valueDepth }) };
  } catch (error) {
    if (error instanceof StrictJsonError) throw new InvalidArgumentError("It takes a JSON value.");
    throw error;
  }
}

function checkUsage(command: Command, words: readonly string[], options: OnceOptions): void {
  const wrong = (message: string) => command.error(`error: ${message}`);
  const { show, resolve, epoch, result } = options;
  if (show === true && resolve !== undefined) wrong("--show and --resolve exclude each other");
  if (show === true || resolve !== undefined) {
    if (words.length > 0) wrong("a command is run without --show and --resolve");
  } else if (words.length === 0) {
    wrong("say what to run: claudemesh once <key> -- <command …>");
  }
  if ((resolve === undefined) !== (epoch === undefined)) wrong("--resolve and --epoch go together");
  if (result !== undefined && resolve !== "done") wrong("--result goes with --resolve done");
}

/** A connection per call: a command may run for longer than any of them lasts. */
async function runShowOrResolve(
  shell: Shell,
  key: string,
  words: readonly string[],
  options: OnceOptions,
): Promise<Outcome | undefined> {
  const paths = pathsFor(shell, options);
  const call: BrokerCall = (operation, input) => asMember(shell, paths, (ask) => ask(operation, input));
  if (options.show === true) return showKey(shell, paths, call, key, options);
  if (options.resolve !== undefined) return resolveEpoch(shell, call, key, options);
  return runOnce(shell, call, key, words, options);
}

async function runOnce(
  shell: Shell,
  call: BrokerCall,
  key: string,
  words: readonly string[],
  options: OnceOptions,
): Promise<Outcome | undefined> {
  await checkCommand(shell, call, key, words);
  const live = options.json !== true;
  const ended = await createOnce({ call }).run<CommandResult>(
    key,
    [...words],
    ({ signal }) =>
      runCommand(words, signal, {
        stdout: live ? shell.raw("stdout") : undefined,
        stderr: live ? shell.raw("stderr") : undefined,
        warn: (text) => shell.err(`claudemesh: ${text}`),
      }),
    { wait: options.wait !== false, leaseSeconds: options.lease },
  );
  const { result } = ended;
  process.exitCode = exitCodeOf(result);
  if (!live) return { value: { key, epoch: ended.epoch, ran: ended.ran, ...result }, text: "" };
  if (!ended.ran) printAgain(shell, result);
  return undefined;
}

/** Nothing is claimed for a command that does not exist here; a result that is there needs no command. */
async function checkCommand(shell: Shell, call: BrokerCall, key: string, words: readonly string[]): Promise<void> {
  const [program = ""] = words;
  if (canBeFound(program, shell.env.PATH)) return;
  const { state } = (await call("once.get", { key })) as { state: string };
  if (state !== "absent" && state !== "released") return;
  throw new MeshError("not_found", `There is no command ${program} here; nothing was claimed.`, { command: program });
}

/** A key may have been settled by hand, with a result that no command has. */
function exitCodeOf(result: unknown): number {
  const { exit_code } = (result ?? {}) as { exit_code?: unknown };
  return typeof exit_code === "number" && Number.isInteger(exit_code) ? exit_code & 0xff : 0;
}

/**
 * What another host's command printed, as it was where it goes to a program, made safe where it goes to a terminal. A
 * result that no command has left is shown as it is.
 */
function printAgain(shell: Shell, result: unknown): void {
  const fields = (result ?? {}) as Readonly<Record<string, unknown>>;
  if (!Object.hasOwn(fields, "exit_code")) {
    shell.out(jsonText(result));
    return;
  }
  const stdout = outputBytes("stdout", fields);
  shell.raw("stdout").write(shell.columns === undefined ? stdout : neutralise(stdout.toString()));
  shell.raw("stderr").write(neutralise(outputBytes("stderr", fields).toString()));
}

type EpochItem = {
  readonly epoch: number;
  readonly state: string;
  readonly holder_pubkey: string;
  readonly claimed_at: number;
  readonly lease_until: number;
  readonly settled_by?: string;
  readonly settled_at?: number;
};

type ShownKey = { readonly state: string; readonly epochs: readonly EpochItem[]; readonly result?: unknown };

async function showKey(
  shell: Shell,
  paths: MeshPaths,
  call: BrokerCall,
  key: string,
  options: OnceOptions,
): Promise<Outcome> {
  const value = (await call("once.get", { key })) as ShownKey;
  if (value.epochs.length === 0) return { value, text: `No member has claimed ${key}.` };
  const nameOf = await readNames(shell, paths, options);
  const rows = value.epochs.map((epoch) => [
    String(epoch.epoch),
    stateCell(epoch.state),
    nameOf(epoch.holder_pubkey),
    timeCell(epoch.claimed_at),
    timeCell(epoch.lease_until),
    epoch.settled_at === undefined ? "" : `${formatTime(epoch.settled_at)} by ${epoch.settled_by}`,
  ]);
  const table = formatTable(["EPOCH", "STATE", "HOLDER", "CLAIMED", "LEASE UNTIL", "SETTLED"], rows, shell.columns);
  const [newest] = value.epochs;
  const next = {
    uncertain: hint(
      shell,
      `Look whether its effect happened, then: claudemesh once ${key} --resolve done|not-done --epoch ${newest?.epoch}`,
    ),
    done: `Result: ${JSON.stringify(value.result)}`,
    released: "It was not done; the next claim may run it.",
  }[value.state];
  return { value, text: next === undefined ? table : `${table}\n${next}` };
}

async function resolveEpoch(shell: Shell, call: BrokerCall, key: string, options: OnceOptions): Promise<Outcome> {
  const outcome = options.resolve === "done" ? "done" : "not_done";
  const { epoch, result } = options;
  await confirm(shell, options, `Epoch ${epoch} of ${key} will be settled as ${options.resolve}, for every member.`);
  const input = { key, epoch, outcome, ...(result === undefined ? {} : { result: result.value }) };
  const value = await call("once.resolve", input);
  const then = outcome === "done" ? "later callers get its result" : "the next claim may run it";
  return { value, text: `Epoch ${epoch} of ${key} is settled as ${options.resolve}; ${then}.` };
}

type ListOptions = CommonOptions & { readonly uncertain?: boolean };

/** The keys of `once` in a mesh, or only those of which it is not known whether their effect happened. */
function defineList(command: Command, shell: Shell): void {
  withTimes(withMesh(command))
    .option("--uncertain", "only keys whose lease ended and of which nothing was recorded")
    .action((options: ListOptions) => run(shell, options, () => listKeys(shell, options)));
  examples(command, "claudemesh once list", "claudemesh once list --uncertain --json");
}

async function listKeys(shell: Shell, options: ListOptions) {
  const paths = pathsFor(shell, options);
  const state = options.uncertain === true ? ({ state: "uncertain" } as const) : {};
  const items = await readMeshList<OnceItem>(shell, paths, {
    fromDaemon: (daemon, query) => daemon.onceKeys({ ...query, ...state }),
    operation: "once.list",
    input: state,
  });
  return {
    value: { items },
    text: describeKeys(items, options.uncertain === true, shell, await readNames(shell, paths, options)),
  };
}

function describeKeys(items: readonly OnceItem[], onlyUncertain: boolean, shell: Shell, nameOf: NameOf): string {
  if (items.length === 0) return onlyUncertain ? "No key is uncertain." : "There are no keys.";
  const rows = items.map((item) => [
    item.key,
    stateCell(item.state),
    String(item.epoch),
    timeCell(item.claimed_at),
    timeCell(item.settled_at ?? item.lease_until),
    nameOf(item.holder_pubkey),
  ]);
  const table = formatTable(
    ["KEY", "STATE", "EPOCH", "CLAIMED", "SETTLED, OR LEASE UNTIL", "HOLDER"],
    rows,
    shell.columns,
  );
  const uncertain = items.find(({ state }) => state === "uncertain");
  if (uncertain === undefined) return table;
  const { key, epoch } = uncertain;
  const next = hint(shell, `claudemesh once ${key} --resolve done --epoch ${epoch}, or --resolve not-done`);
  return `${table}\nLook whether its effect happened, then say so: ${next}`;
}

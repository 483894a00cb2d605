// Fault points for tests: named points in the code where a run can be made to crash, fail or wait. Off unless a text
// is given. Which names exist is the caller's list, so that a misspelt one is refused instead of never hit.
import assert from "node:assert/strict";
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { StorageError } from "./storage-error.ts";

export type FailpointAction = { do: "crash" } | { do: "error" } | { do: "delay"; delayMs: number };

export interface FailpointRule<Name extends string = string> {
  name: Name;
  /** The one hit that counts, from 1; absent means every hit. */
  hitNumber: number | undefined;
  action: FailpointAction;
}

export interface Failpoints<Name extends string = string> {
  /** Say so loudly at start-up when true. */
  readonly active: boolean;
  hit(name: Name): void | Promise<void>;
  /** For points inside a transaction: a delay blocks the thread. */
  hitSync(name: Name): void;
  /** What is set, for the log. */
  describe(): string;
}

/** The text of the setting is wrong; the message says where. */
export class FailpointSyntaxError extends Error {
  override readonly name = "FailpointSyntaxError";
}

const rulePattern = /^([a-z][a-z0-9_.]*)(?:@([1-9][0-9]{0,8}))?=(?:(crash|error)|delay:([0-9]{1,6}))$/;

/** Reads `name[@n]=crash|error|delay:<ms>,…`; the empty text is no rule at all. */
export function parseFailpoints<Name extends string>(text: string, names: readonly Name[]): FailpointRule<Name>[] {
  if (text.trim() === "") return [];
  return text.split(",").map((item) => parseRule(item.trim(), names));
}

const noFailpoints: Failpoints = {
  active: false,
  hit: () => undefined,
  hitSync: () => undefined,
  describe: () => "no fault points set",
};

export function createFailpoints<Name extends string>(rules: readonly FailpointRule<Name>[]): Failpoints<Name> {
  if (rules.length === 0) return noFailpoints;
  const hits = new Map<Name, number>();
  const countHit = (name: Name): FailpointAction[] => {
    const hitNumber = (hits.get(name) ?? 0) + 1;
    hits.set(name, hitNumber);
    return rules
      .filter((rule) => rule.name === name && (rule.hitNumber === undefined || rule.hitNumber === hitNumber))
      .map((rule) => rule.action);
  };
  return {
    active: true,
    async hit(name) {
      for (const action of countHit(name)) {
        if (action.do === "delay") await sleep(action.delayMs);
        else fail(name, action.do);
      }
    },
    hitSync(name) {
      for (const action of countHit(name)) {
        if (action.do === "delay") blockThread(action.delayMs);
        else fail(name, action.do);
      }
    },
    describe: () => `fault points set: ${rules.map(describeRule).join(", ")}`,
  };
}

function parseRule<Name extends string>(item: string, names: readonly Name[]): FailpointRule<Name> {
  const match = rulePattern.exec(item);
  if (match === null) {
    throw new FailpointSyntaxError(`"${item}" is not a fault point: write name[@n]=crash|error|delay:<ms>`);
  }
  const [, written, hitText, verb, delayText] = match;
  const name = names.find((known) => known === written);
  if (name === undefined) {
    throw new FailpointSyntaxError(`there is no fault point "${written}"; there are ${names.join(", ")}`);
  }
  const hitNumber = hitText === undefined ? undefined : Number(hitText);
  if (verb === "crash" || verb === "error") return { name, hitNumber, action: { do: verb } };
  return { name, hitNumber, action: { do: "delay", delayMs: Number(delayText) } };
}

function describeRule(rule: FailpointRule): string {
  const at = rule.hitNumber === undefined ? "" : `@${rule.hitNumber}`;
  const verb = rule.action.do === "delay" ? `delay:${rule.action.delayMs}` : rule.action.do;
  return `${rule.name}${at}=${verb}`;
}

// An injected error looks like the one that can really happen at such a point, so that no caller knows the difference.
function fail(name: string, verb: "crash" | "error"): never {
  if (verb === "error") throw new StorageError("io", `the fault point ${name} is set to fail`);
  process.kill(process.pid, "SIGKILL");
  // The signal may take a moment to arrive, and nothing after this point may run.
  blockThread(Number.POSITIVE_INFINITY);
  assert.fail("a process survived SIGKILL");
}

function blockThread(durationMs: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, durationMs);
}

// Runs the chosen scenarios of one area against one target, one after the other, and reports how each ended.

import { Miss, type MissFacts, Skipped } from "./endings.ts";
import type { OptionValues } from "./options.ts";
import type { Area, ScenarioInfo } from "./scenario.ts";

export type ScenarioResult = ScenarioInfo & {
  readonly outcome: "passed" | "failed" | "skipped";
  readonly duration_ms: number;
  /** Why it was skipped. */
  readonly reason?: string;
  readonly miss?: MissFacts;
};

/** `only` names sections (with all below them) or ids; an empty list means all. */
export function chooseScenarios(area: Area, only: readonly string[]): readonly ScenarioInfo[] {
  if (only.length === 0) return area.scenarios;
  return area.scenarios.filter((each) => only.some((wanted) => isMeant(each, wanted)));
}

export function isMeant({ id, section }: ScenarioInfo, wanted: string): boolean {
  return id === wanted || section === wanted || section.startsWith(`${wanted}.`);
}

export type RunOptions = {
  readonly values: OptionValues;
  readonly chosen: readonly ScenarioInfo[];
  readonly timeoutMs: number;
  readonly onResult?: (result: ScenarioResult) => void;
};

/** Rejects with CannotBegin when the target cannot be opened. */
export async function runArea(area: Area, options: RunOptions): Promise<readonly ScenarioResult[]> {
  const target = await area.open(options.values);
  const results: ScenarioResult[] = [];
  try {
    for (const info of options.chosen) {
      const result = await runOne(info, () => target.run(info.id), options.timeoutMs);
      results.push(result);
      options.onResult?.(result);
    }
  } finally {
    await target.close();
  }
  return results;
}

async function runOne(info: ScenarioInfo, run: () => Promise<void>, timeoutMs: number): Promise<ScenarioResult> {
  const { id, section, says } = info;
  const startedAtMs = performance.now();
  const end = (rest: Pick<ScenarioResult, "outcome" | "reason" | "miss">): ScenarioResult => {
    return { id, section, says, duration_ms: Math.round(performance.now() - startedAtMs), ...rest };
  };
  try {
    await within(run(), timeoutMs);
    return end({ outcome: "passed" });
  } catch (error) {
    if (error instanceof Skipped) return end({ outcome: "skipped", reason: error.message });
    if (error instanceof Miss) return end({ outcome: "failed", miss: error.facts });
    // Any other error stopped the scenario before it showed anything; its stack helps the reader.
    const got = error instanceof Error ? (error.stack ?? error.message) : String(error);
    return end({ outcome: "failed", miss: { expected: says, got, request: "(see the stack)" } });
  }
}

async function within(work: Promise<void>, timeoutMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const bound = new Promise<never>((_, reject) => {
    const facts = { expected: `an end within ${timeoutMs / 1000} s`, got: "none", request: "(the whole scenario)" };
    timer = setTimeout(() => reject(new Miss(facts)), timeoutMs);
  });
  try {
    await Promise.race([work, bound]);
  } finally {
    clearTimeout(timer);
  }
}

// The checks that scenarios make on answers. A failed check ends its scenario with a Miss that names the request.
import { setTimeout as sleep } from "node:timers/promises";
import { canonicalJson } from "@claudemesh/protocol/canonical";
import { errorCatalogue } from "@claudemesh/protocol/error-catalogue";
import type { JsonValue } from "@claudemesh/protocol/json";
import { Miss } from "./endings.ts";
import { aBoolean, aText, findDifference, type Pattern, show } from "./pattern.ts";

/** An answer over HTTP or in a reply frame, with its request in a form for people. */
export type Answer = {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
  readonly request: string;
};

/** Fails unless the status is the wanted one (or one of them) and the body matches. */
export function expectAnswer<A extends Answer>(answer: A, status: number | readonly number[], body: Pattern = {}): A {
  const statuses = typeof status === "number" ? [status] : status;
  if (!statuses.includes(answer.status)) {
    const got = `status ${answer.status} ${show(answer.body)}`;
    throw new Miss({ expected: `status ${statuses.join(" or ")}`, got, request: answer.request });
  }
  const difference = findDifference(body, answer.body);
  if (difference !== undefined) {
    const expected = difference.path === "" ? difference.expected : `${difference.path}: ${difference.expected}`;
    throw new Miss({ expected, got: `${difference.got} in ${show(answer.body)}`, request: answer.request });
  }
  return answer;
}

/** A refusal in the one shape that all have; a code of the catalogue must have its status and class from there. */
export function expectRefusal<A extends Answer>(
  answer: A,
  status: number,
  error?: string,
  more: { readonly [field: string]: Pattern } = {},
): A {
  expectAnswer(answer, status, { error: error ?? aText, message: aText, retryable: aBoolean, ...more });
  const code = String(answer.body.error);
  const entry = Object.entries(errorCatalogue).find(([name]) => name === code)?.[1];
  if (entry !== undefined) {
    // An error that the contract of spaces names has its name beside the code.
    const named = "name" in entry ? { name: entry.name } : {};
    expectAnswer(answer, entry.status, { retryable: entry.retryable, ...named });
  } else expectThat(/^[a-z][a-z0-9_]*$/.test(code), "error: a stable code in snake_case", code, answer.request);
  return answer;
}

export function expectThat(holds: boolean, expected: string, got: unknown, request: string): void {
  if (!holds) throw new Miss({ expected, got: typeof got === "string" ? got : show(got), request });
}

/** The same JSON, whatever the order of its keys. */
export function expectSameJson(got: unknown, expected: unknown, what: string, request: string): void {
  const same = got !== undefined && canonicalJson(got as JsonValue) === canonicalJson(expected as JsonValue);
  expectThat(same, `${what}: ${show(expected)}`, got, request);
}

export function expectEqual(got: unknown, expected: unknown, what: string, request: string): void {
  const wanted = show(expected);
  expectThat(JSON.stringify(got) === JSON.stringify(expected), `${what}: ${wanted}`, got, request);
}

export function fieldOf(answer: Answer, field: string): string {
  return String(answer.body[field]);
}

export function itemsOf(answer: Answer): readonly Readonly<Record<string, unknown>>[] {
  const { items } = answer.body;
  expectThat(Array.isArray(items), "items: a list", answer.body, answer.request);
  return items as readonly Readonly<Record<string, unknown>>[];
}

const patienceMs = 20_000;

/** Asks again until there is an answer. It waits for a state; the time limit only ends a scenario that has failed. */
export async function eventually<T>(
  expected: string,
  ask: () => Promise<{ readonly found: T } | { readonly got: unknown; readonly request: string }>,
  boundMs = patienceMs,
): Promise<T> {
  const deadlineMs = performance.now() + boundMs;
  for (;;) {
    const outcome = await ask();
    if ("found" in outcome) return outcome.found;
    if (performance.now() > deadlineMs) {
      throw new Miss({
        expected: `${expected} within ${boundMs / 1000} s`,
        got: show(outcome.got),
        request: outcome.request,
      });
    }
    await sleep(25);
  }
}

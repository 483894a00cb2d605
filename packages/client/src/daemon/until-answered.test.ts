import { expect, it } from "vitest";
import type { DaemonAnswer } from "./daemon-call.ts";
import { DaemonUnreachable } from "./daemon-failures.ts";
import { untilAnswered } from "./until-answered.ts";

const busy = { status: 429, body: { error: "daemon_busy", message: "busy", retryable: true } };
const conflict = { status: 409, body: { error: "idempotency_key_reused", message: "taken", retryable: false } };
const done = { status: 202, body: { status: "queued" } };
const away = () => new DaemonUnreachable("gone", { sent: true, timedOut: false });

/** Answers, or throws, one end after the other. */
function ends(...list: readonly (DaemonAnswer<unknown> | Error)[]) {
  const left = [...list];
  return async () => {
    const end = left.shift();
    if (end === undefined) throw new Error("asked too often");
    if (end instanceof Error) throw end;
    return end;
  };
}

it("asks again where nothing came and where the answer says later", async () => {
  const heard: unknown[] = [];
  const answer = await untilAnswered(ends(away(), busy, done), { onRetry: (why) => heard.push(why) });
  expect(answer).toBe(done);
  expect(heard).toEqual([expect.any(DaemonUnreachable), busy]);
});

it("hands over a refusal that stays one, and throws what is no failure of the daemon", async () => {
  expect(await untilAnswered(ends(conflict))).toBe(conflict);
  await expect(untilAnswered(ends(new TypeError("a bug")))).rejects.toThrow("a bug");
});

it("ends when it is told to, also between two tries", async () => {
  const stop = new AbortController();
  const asking = untilAnswered(ends(away(), away()), { signal: stop.signal, onRetry: () => stop.abort() });
  await expect(asking).rejects.toThrow(expect.objectContaining({ name: "AbortError" }));
  await expect(untilAnswered(ends(), { signal: stop.signal })).rejects.toThrow(/aborted/);
});

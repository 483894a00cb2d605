// What became of a request: the answer for a caller that does not know whether its request was committed. That nothing is known is
// an answer too.
import { countAttempts } from "../core/attempts.ts";
import type { RegistrarStore } from "../ports.ts";
import { requestBody } from "./bodies.ts";
import type { RetryCounter } from "./retry-counter.ts";

export type ResolvePorts = {
  readonly store: Pick<RegistrarStore, "requests" | "attempts">;
  readonly retries: Pick<RetryCounter, "flush">;
};

type Body = Record<string, unknown>;

export async function resolveRequest(ports: ResolvePorts, meshId: string, key: string): Promise<Body> {
  const { stored, attempts } = await readWithAttempts(ports, meshId, key);
  const counted = { attempts: countAttempts(stored?.consumption.attemptId, attempts) };
  if (stored === undefined) return { logical_request_key: key, state: "unknown", ...counted };
  return { logical_request_key: key, ...requestBody(stored), ...counted };
}

export async function listAttempts(ports: ResolvePorts, meshId: string, key: string): Promise<Body> {
  const { stored, attempts } = await readWithAttempts(ports, meshId, key);
  if (stored === undefined) return { logical_request_key: key, items: [], recorded: 0, retries: 0 };
  const { attemptId, consumedAtMs } = stored.consumption;
  const first = {
    attempt_id: attemptId,
    member_pubkey: stored.registration.registeredBy,
    won: true,
    tries: 1,
    first_at: consumedAtMs,
    last_at: consumedAtMs,
  };
  const items = attempts.map((attempt) => ({
    attempt_id: attempt.attemptId ?? null,
    member_pubkey: attempt.memberPubkey,
    won: false,
    tries: attempt.tries,
    first_at: attempt.firstAtMs,
    last_at: attempt.lastAtMs,
  }));
  return { logical_request_key: key, items: [first, ...items], ...countAttempts(attemptId, attempts) };
}

async function readWithAttempts({ store, retries }: ResolvePorts, meshId: string, key: string) {
  await retries.flush();
  const stored = await store.requests.find(meshId, key);
  return { stored, attempts: stored === undefined ? [] : await store.attempts.list(meshId, key) };
}

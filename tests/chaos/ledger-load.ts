// Programs that commit to a space, run effects behind `once` and register artifacts while a chaos run lasts. Each writes
// down what it was answered, and says at the end whether that is there, once.
import { hash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { BrokerCall } from "@claudemesh/client/broker";
import { createHttpCall } from "@claudemesh/client/broker-http";
import { meshPaths, readMeshConfig } from "@claudemesh/client/home";
import { readKeyFile, signerOf } from "@claudemesh/client/keys";
import { createOnce, OnceLeaseLost, OnceNotRecorded, OnceUncertain } from "@claudemesh/client/once";
import { createRegistrarClient } from "@claudemesh/client/registrar";
import type { Cluster } from "./cluster.ts";

export type LedgerWork = {
  readonly name: "commits" | "once" | "registrations";
  /** Starts one more, and resolves when it is answered. */
  readonly step: (n: number) => Promise<void>;
  readonly answered: () => number;
  /** Ends that cannot be known: allowed, counted, and never a second effect. */
  readonly uncertain: () => number;
  /** What was answered and is not there once. */
  readonly findings: () => Promise<string[]>;
};

const betweenMs = 40;
const requestTimeoutMs = 5_000;
const space = "ledger";
const topic = "ledger";

export async function openLedger(cluster: Cluster): Promise<LedgerWork[]> {
  const { brokerUrl: broker, mesh, peers } = cluster;
  const call = createHttpCall({ broker, mesh, token: await cluster.mintToken(), requestTimeoutMs });
  const paths = meshPaths(peers[0].home, mesh);
  const owner = { sign: signerOf(readKeyFile(paths.keypair)), meshId: readMeshConfig(paths).id };
  return [await openSpaceWork(call), openOnceWork(call), openRegistrarWork(call, owner)];
}

/** Until `on` is false. What the work throws is for the caller. */
export async function keepWorking(work: LedgerWork, load: { readonly on: boolean }): Promise<void> {
  for (let n = 1; load.on; n++) {
    await work.step(n);
    await sleep(betweenMs);
  }
}

/** Asks the same again until it is answered: that is what its identity is for. */
async function askUntilAnswered<T>(call: BrokerCall, ...[operation, input]: Parameters<BrokerCall>): Promise<T> {
  for (;;) {
    try {
      return (await call(operation, input)) as T;
    } catch (error) {
      if ((error as { retryable?: unknown }).retryable !== true) throw error;
      await sleep(betweenMs);
    }
  }
}

type LogItem = { readonly seq: number; readonly sessionId: string; readonly localSeq: number };

/** Every commit adds an entity that no other caller writes, and announces it in a topic. */
async function openSpaceWork(call: BrokerCall): Promise<LedgerWork> {
  await askUntilAnswered(call, "topic.create", { name: topic });
  await askUntilAnswered(call, "space.create", { name: space });
  type Session = { readonly sessionId: string; readonly sessionToken: string };
  const open = { space, openId: "chaos" };
  const { sessionId, sessionToken } = await askUntilAnswered<Session>(call, "space.open", open);
  const answered = new Map<number, number>();
  const step = async (localSeq: number) => {
    const id = `entry:${localSeq}`;
    const commit = {
      localSeq,
      reads: { confirmed: [{ id, path: ["value"], seq: 0 }], pending: [] },
      operations: [{ op: "set", id, value: { value: localSeq } }],
      sends: [{ client_message_id: id, destination: { kind: "topic", ref: topic }, body: id }],
    };
    const input = { space, sessionId, sessionToken, commit };
    const { seq } = await askUntilAnswered<{ seq: number }>(call, "space.commit", input);
    answered.set(localSeq, seq);
  };
  const findings = async () => {
    const log = await readAll<LogItem>((after) => askUntilAnswered(call, "space.log", { space, after, limit: 500 }));
    const stored = new Map(log.map(({ localSeq, seq }) => [localSeq, seq]));
    const wrong = [...answered].filter(([localSeq, seq]) => stored.get(localSeq) !== seq);
    const found = wrong.map(([localSeq, seq]) => `commit ${localSeq} was answered with seq ${seq} and is not there`);
    if (stored.size !== log.length) found.push(`${log.length} commits in the log, ${stored.size} different ones`);
    return found;
  };
  return { name: "commits", step, answered: () => answered.size, uncertain: () => 0, findings };
}

async function readAll<Item extends { readonly seq: number }>(
  read: (after: number) => Promise<{ readonly items: readonly Item[] }>,
): Promise<Item[]> {
  const all: Item[] = [];
  for (;;) {
    const { items } = await read(all.at(-1)?.seq ?? 0);
    if (items.length === 0) return all;
    all.push(...items);
  }
}

/** Two callers race for every key. */
function openOnceWork(call: BrokerCall): LedgerWork {
  const { run } = createOnce({ call });
  const ran = new Map<string, number>();
  const results = new Map<string, Set<unknown>>();
  let uncertain = 0;
  const callOnce = async (key: string, caller: number) => {
    const effect = () => {
      ran.set(key, (ran.get(key) ?? 0) + 1);
      return `${key} by ${caller}`;
    };
    try {
      const { result } = await run(key, [], effect, { leaseSeconds: 30, claimForMs: 120_000, recordForMs: 120_000 });
      results.set(key, (results.get(key) ?? new Set()).add(result));
    } catch (error) {
      const isKnown = [OnceUncertain, OnceNotRecorded, OnceLeaseLost].some((kind) => error instanceof kind);
      if (!isKnown) throw error;
      uncertain += 1;
    }
  };
  return {
    name: "once",
    step: async (n) => {
      await Promise.all([callOnce(`chaos-${n}`, 1), callOnce(`chaos-${n}`, 2)]);
    },
    answered: () => results.size,
    uncertain: () => uncertain,
    findings: async () => [
      ...[...ran].filter(([, times]) => times > 1).map(([key, times]) => `the effect of ${key} ran ${times} times`),
      ...[...results].filter(([, each]) => each.size > 1).map(([key]) => `${key} has more than one result`),
    ],
  };
}

/** An approval and a registration under it, each key once. */
function openRegistrarWork(
  call: BrokerCall,
  owner: { readonly sign: (bytes: Uint8Array) => Uint8Array; readonly meshId: string },
): LedgerWork {
  const registrar = createRegistrarClient({ call, ...owner, lostAnswersMax: 200, sleep: () => sleep(betweenMs) });
  const answered = new Map<string, string>();
  const artifact_hash = hash("sha256", "chaos", "hex");
  const step = async (n: number) => {
    const key = `chaos-${n}`;
    const effect = { operation: "release", target: "prod", artifact_hash, run_id: key };
    const now = Date.now();
    const window = { not_before: now - 60_000, not_after: now + 3_600_000 };
    const { approval_id, authorization_nonce = "" } = await registrar.approve({ ...effect, ...window });
    const request = { ...effect, logical_request_key: key, approval_id, authorization_nonce };
    const { registration } = await registrar.register(request);
    answered.set(key, registration.registration_id);
  };
  const findings = async () => {
    const found: string[] = [];
    for (const [key, id] of answered) {
      const { registration, state } = await registrar.status(key);
      if (registration?.registration_id !== id) found.push(`${key} was registered as ${id} and is not`);
      else if (state !== "registered_closed") found.push(`${key} is ${state} and not closed`);
    }
    return found;
  };
  return { name: "registrations", step, answered: () => answered.size, uncertain: () => 0, findings };
}

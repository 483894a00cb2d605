// One chaos run on one store: load, blows, and then, when everything is mended and has settled, whether all that was
// answered is there once and the records balance.
import { AssertionError } from "node:assert";
import { bodyOf } from "@claudemesh/client/daemon";
import { type Load, startCallers } from "../support/chaos-load.ts";
import { expectAuditBalances, expectDeliveredOnce, expectOutboxDone } from "../support/oracle.ts";
import { runCli, runJson } from "../support/process.ts";
import { createRandom } from "../support/seed.ts";
import type { Sent } from "../support/senders.ts";
import { until } from "../support/world.ts";
import { type Closing, Cluster, closeAll, type StoreKind } from "./cluster.ts";
import { keepWorking, type LedgerWork, openLedger } from "./ledger-load.ts";
import { mendAll, type Struck, strikeUntil } from "./storm.ts";

export type ChaosRun = {
  readonly store: StoreKind;
  readonly seed: number;
  readonly seconds: number;
  readonly blows: Readonly<Record<string, number>>;
  readonly ended_by_themselves: readonly string[];
  /** Calls that got their answer, by what was asked. */
  readonly answered: Readonly<Record<string, number>>;
  /** Callers that gave up, whose message may be there once or not at all; and effects whose end cannot be known. */
  readonly unanswered: number;
  readonly uncertain: number;
  /** Empty: everything that was answered is there once, and everything balances. */
  readonly findings: readonly string[];
  /** As `claudemesh audit` prints it. */
  readonly audit: string;
};

export type RunOptions = {
  readonly seed: number;
  readonly durationMs: number;
  readonly say: (line: string) => void;
  /** Hears in a line what this machine does not allow. */
  readonly leaveOut: (line: string) => void;
  /** Grows with what has to be ended when the run is interrupted. */
  readonly closing: Closing;
};

/** Rows that were refused often wait for long before they are tried again. */
const settleWithinMs = 600_000;

/** Undefined where the store cannot be started here; `leaveOut` has heard why. */
export async function runOn(kind: StoreKind, options: RunOptions): Promise<ChaosRun | undefined> {
  const { closing, leaveOut } = options;
  try {
    const cluster = await Cluster.start(kind, closing, leaveOut);
    if (cluster !== undefined) return await storm(cluster, options);
    leaveOut(`everything on ${kind}: the binaries of PostgreSQL or redis-server are not installed`);
    return undefined;
  } finally {
    await closeAll(closing);
  }
}

async function storm(cluster: Cluster, { seed, durationMs, say }: RunOptions): Promise<ChaosRun> {
  const findings: string[] = [];
  const [alice, bob] = cluster.peers;
  const work = await openLedger(cluster);
  const load: Load = { on: true, answered: 0, allowed: 0 };
  const [fromAlice, fromBob]: [Sent[], Sent[]] = [[], []];
  // The load draws from a generator of its own, so that the seed's blows do not depend on who is answered when.
  const loadRandom = createRandom(seed + 1);
  const working = [
    ...startCallers(alice, "@bob", fromAlice, load, loadRandom),
    ...startCallers(bob, "@alice", fromBob, load, loadRandom),
    ...work.map((each) => keepWorking(each, load)),
  ].map((each) => each.catch((error: unknown) => findings.push(`the load ended early: ${describeError(error)}`)));
  const random = createRandom(seed);
  const startedAtMs = performance.now();
  const struck: Struck = { kinds: {}, endedByThemselves: [] };
  const untilMs = startedAtMs + durationMs;
  await strikeUntil({ cluster, load, random, untilMs, say, struck }).catch((error: unknown) =>
    findings.push(`the storm ended early: ${describeError(error)}`),
  );
  load.on = false;
  const revived = await mendAll(cluster);
  await Promise.all(working);
  const seconds = Math.round((performance.now() - startedAtMs) / 1_000);
  const audit = await judge(cluster, { fromAlice, fromBob }, work, { findings, say });
  const sent = [...fromAlice, ...fromBob];
  return {
    store: cluster.kind,
    seed,
    seconds,
    blows: struck.kinds,
    ended_by_themselves: [...struck.endedByThemselves, ...revived],
    answered: {
      messages: sent.filter((one) => one.answered).length,
      ...Object.fromEntries(work.map((each) => [each.name, each.answered()])),
    },
    unanswered: sent.filter((one) => !one.answered).length,
    uncertain: work.reduce((sum, each) => sum + each.uncertain(), 0),
    findings,
    audit,
  };
}

async function judge(
  cluster: Cluster,
  sent: { readonly fromAlice: readonly Sent[]; readonly fromBob: readonly Sent[] },
  work: readonly LedgerWork[],
  { findings, say }: { readonly findings: string[]; readonly say: RunOptions["say"] },
): Promise<string> {
  const [alice, bob] = cluster.peers;
  const holds = async (check: () => Promise<unknown>) => {
    try {
      await check();
    } catch (error) {
      findings.push(describeError(error));
    }
  };
  // A registration that lost its store before its verdict has one at the latest when a broker starts.
  await holds(() => restartBrokers(cluster));
  const mendedAtMs = performance.now();
  await holds(() => until("everything has settled", () => hasSettled(cluster), settleWithinMs));
  say(`settled ${((performance.now() - mendedAtMs) / 1_000).toFixed(1)} s after the last blow was mended`);
  await holds(() => expectDeliveredOnce(bob, sent.fromAlice));
  await holds(() => expectDeliveredOnce(alice, sent.fromBob));
  await holds(() => expectOutboxDone(alice));
  await holds(() => expectOutboxDone(bob));
  await holds(() => expectAuditBalances(alice, bob));
  await holds(() => expectRowsFit(cluster));
  for (const each of work) await holds(async () => findings.push(...(await each.findings())));
  return (await runCli(["audit", "--home", bob.home], { home: alice.home })).stdout.trimEnd();
}

async function restartBrokers({ brokers }: Cluster): Promise<void> {
  for (const broker of brokers) {
    await broker.kill("SIGTERM");
    await broker.start();
  }
}

type Stats = { readonly meshes: readonly { readonly oldest_unsettled_at: number | null }[] };

async function hasSettled(cluster: Cluster): Promise<boolean> {
  for (const peer of cluster.peers) {
    const { outbox, broker } = bodyOf(await peer.client.health());
    // A daemon that has nothing to send may still be on its way back, and its audit could not ask the broker.
    if (outbox.pending + outbox.inflight > 0 || broker.state !== "online") return false;
  }
  const at = { home: cluster.peers[0].home };
  const { meshes } = await runJson<Stats>(["broker", "stats", "--store", cluster.storeUrl], at);
  return meshes.every((mesh) => mesh.oldest_unsettled_at === null);
}

/** `claudemesh broker check`: all rows of the store that belong together are there. */
async function expectRowsFit(cluster: Cluster): Promise<void> {
  const args = ["broker", "check", "--store", cluster.storeUrl];
  const { code, stdout, stderr } = await runCli(args, { home: cluster.peers[0].home });
  if (code !== 0) throw new Error(`claudemesh broker check exited ${code}: ${stdout} ${stderr}`.slice(0, 2_000));
}

/** Behind the first line of a failed comparison its two sides are listed, which is too long to read. */
function describeError(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return error instanceof AssertionError ? (text.split("\n", 1)[0] ?? "") : text;
}

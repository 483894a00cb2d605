// Does the size of the outbox matter? Two daemons on one broker, one of them with a million rows, half of them pending and
// not yet due and half done; the same work goes to both in turns.
import { DatabaseSync } from "node:sqlite";
import type { Peer } from "../../tests/support/world.ts";
import { until } from "../../tests/support/world.ts";
import { readMachineFacts } from "../method/machine.ts";
import type { Segment } from "../method/rounds.ts";
import { summarise } from "../method/statistics.ts";
import { formatRate, formatRatio, formatSummary } from "../report.ts";
import { startLoad } from "./accept-world.ts";
import { measureRounds } from "./measured-rounds.ts";
import { countOpenRows, type Load, openMesh, sendOrder } from "./mesh-world.ts";
import type { RunSettings, Scenario, ScenarioReport } from "./scenario.ts";

const rows = 1_000_000;
const callers = 64;
/** Seeded rows are due long after the run, and no other row is. */
const farFuture = Date.parse("2200-01-01T00:00:00Z");
const works = ["accept", "list", "drain"] as const;
type Work = (typeof works)[number];
type Figures = Readonly<Partial<Record<Work, number>>>;
type Round = ReadonlyMap<string, Figures>;

export const millionScenario: Scenario = {
  name: "million",
  byName: true,
  summary: "accept, list and drain with a million rows in the outbox, against an empty one",
  run: runMillion,
};

async function runMillion(settings: RunSettings): Promise<ScenarioReport> {
  const machine = readMachineFacts(settings.folder);
  const load = await startLoad(settings.closing);
  const { peers } = await openMesh(settings, ["empty", "million"]);
  const [empty, million] = peers;
  if (empty === undefined || million === undefined) throw new Error("the mesh has no peers");
  settings.progress(`writing ${formatRate(rows)} rows`);
  seed(million);
  const segments: Segment<undefined, Figures>[] = [empty, million].flatMap((peer) => [
    { name: `send ${peer.name}`, measure: () => acceptAndDrain(load, peer, settings.segmentMs) },
    { name: `list ${peer.name}`, measure: () => list(peer, settings.segmentMs / 2) },
  ]);
  for (const peer of [empty, million]) await acceptAndDrain(load, peer, settings.warmUpMs);
  const { outcomes, rounds: clean } = await measureRounds<undefined, Figures>(settings, {
    open: async () => undefined,
    segments,
    close: async () => undefined,
  });
  return {
    scenario: millionScenario.name,
    title: "A million rows in the outbox",
    conditions: [
      `One outbox with ${formatRate(rows)} rows, every second one pending and not due for long, the others done; one that began empty. Both daemons are connected to one broker.`,
      `Accept: ${callers} callers. Drain: from the first send until the broker has all of them. List: pages of 100 rows, one after the other, of all rows and of the done ones: both outboxes have a full page of each.`,
    ],
    durability: ["As in the other scenarios: a flush before every answer, at the daemon and at the broker."],
    machine,
    segmentMs: settings.segmentMs,
    outcomes,
    tables: clean === undefined ? [] : [tableOf(clean)],
    bars: [],
  };
}

function figure(round: Round, work: Work, name: string): number {
  return round.get(`${work === "list" ? "list" : "send"} ${name}`)?.[work] ?? Number.NaN;
}

function ratios(rounds: readonly Round[], work: Work): number[] {
  return rounds.map((round) => figure(round, work, "empty") / figure(round, work, "million"));
}

function tableOf(rounds: readonly Round[]) {
  const per = (work: Work, name: string) =>
    formatSummary(summarise(rounds.map((round) => figure(round, work, name))), formatRate);
  return {
    caption: "Per second",
    columns: ["what", "empty", "a million rows", "empty ÷ million"],
    rows: works.map((work) => [
      work,
      per(work, "empty"),
      per(work, "million"),
      formatSummary(summarise(ratios(rounds, work)), formatRatio),
    ]),
  };
}

async function acceptAndDrain(load: Load, peer: Peer, durationMs: number): Promise<Figures> {
  const startedAtMs = performance.now();
  const { accepted, perSecond } = await load.ask(sendOrder(peer, { callers }, durationMs));
  await until("the broker has all of them", () => countOpenRows(peer, farFuture) === 0 || undefined);
  return { accept: perSecond, drain: accepted / ((performance.now() - startedAtMs) / 1_000) };
}

/** First pages, as large on both sides. */
async function list(peer: Peer, durationMs: number): Promise<Figures> {
  const startedAtMs = performance.now();
  const queries = [{ limit: 100 }, { limit: 100, status: "done" as const }];
  let pages = 0;
  while (performance.now() - startedAtMs < durationMs) {
    for (const query of queries) {
      const { status } = await peer.client.outbox(query);
      if (status !== 200) throw new Error(`a page of the outbox answered ${status}`);
      pages++;
    }
  }
  return { list: pages / ((performance.now() - startedAtMs) / 1_000) };
}

/** Written past the running daemon, as rows that it could have made itself. */
function seed(peer: Peer): void {
  const db = new DatabaseSync(`${peer.folder}/outbox.db`, { timeout: 60_000 });
  const insert = db.prepare(`WITH RECURSIVE n(i) AS (SELECT ? UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?)
    INSERT INTO outbox (id, client_message_id, request_fingerprint, wire_fingerprint, to_address, destination_kind,
      destination_ref, priority, meta, envelope_version, enqueued_at, attempts, next_attempt_at, status, delivered_at,
      broker_message_id, history_id, payload)
    SELECT printf('00000000000000000000%06d', i), printf('seed-%d', i), randomblob(32), randomblob(32), '#bench', 'topic',
      'bench', 'next', '', '1', ?, 1, iif(i % 2 = 0, ?, ?), iif(i % 2 = 0, 'pending', 'done'), iif(i % 2 = 0, NULL, ?),
      iif(i % 2 = 0, NULL, printf('b-%d', i)), iif(i % 2 = 0, NULL, i), randomblob(200)
    FROM n`);
  const now = Date.now();
  // In pieces, so that the daemon is not kept from its own writes for long.
  for (let from = 0; from < rows; from += 20_000) insert.run(from, from + 20_000, now, farFuture, now, now);
  db.close();
}

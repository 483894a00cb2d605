// What a daemon costs a host that does nothing with it: its memory and its start against a minimal Fastify process, and
// one `claudemesh send` against a Node that does nothing. Built JavaScript, warm compile caches, an empty outbox.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { ensureMeshDir, meshPaths, writeMeshConfig } from "@claudemesh/client/home";
import { generateMemberKeys, writeKeyFile } from "@claudemesh/client/keys";
import { judgeBar } from "../method/bars.ts";
import { readMachineFacts } from "../method/machine.ts";
import { summarise } from "../method/statistics.ts";
import { type BuiltProduct, buildProduct } from "../processes/built-product.ts";
import { type ProcessSpec, startTimed, timeRuns } from "../processes/timed-start.ts";
import { type formatMs, formatRate, formatRatio, formatSummary } from "../report.ts";
import { measureRounds } from "./measured-rounds.ts";
import type { RunSettings, Scenario, ScenarioReport } from "./scenario.ts";

const bars = [
  { name: "daemon's RSS ÷ minimal Fastify's", kind: "at_most", limit: 1.5 },
  { name: "daemon's start ÷ minimal Fastify's", kind: "at_most", limit: 2 },
  { name: "`claudemesh send` ÷ `node -e 0`", kind: "at_most", limit: 4 },
] as const;

const sendsPerRound = 9;

type Figures = { readonly ms: number; readonly rssMiB?: number };
type Round = ReadonlyMap<string, Figures>;

export const footprintScenario: Scenario = {
  name: "footprint",
  byName: true,
  summary: "the daemon's memory and start against a minimal Fastify process, and one send against node -e 0",
  run: runFootprint,
};

async function runFootprint(settings: RunSettings): Promise<ScenarioReport> {
  const machine = readMachineFacts(settings.folder);
  settings.progress("building");
  const world = new FootprintWorld(settings, buildProduct(settings.folder));
  await world.warmUp();
  const { outcomes, rounds } = await measureRounds<FootprintWorld, Figures>(settings, {
    open: async () => world,
    segments: [
      { name: "fastify", measure: () => world.fastify() },
      { name: "daemon", measure: () => world.daemon() },
      { name: "node", measure: () => world.node() },
      { name: "send", measure: () => world.send() },
    ],
    close: async () => undefined,
  });
  const ratios = rounds && [
    rounds.map((round) => rss(round, "daemon") / rss(round, "fastify")),
    rounds.map((round) => ms(round, "daemon") / ms(round, "fastify")),
    rounds.map((round) => ms(round, "send") / ms(round, "node")),
  ];
  return {
    scenario: footprintScenario.name,
    title: "What an idle daemon costs",
    conditions: [
      "Built JavaScript, compile caches warm on both sides, an empty outbox, the broker away.",
      "From spawn to the ready line; memory is VmRSS half a second later. A send is the whole command, a 202 included.",
      `Sends and empty Nodes: the median of ${sendsPerRound} in each round.`,
    ],
    durability: ["The daemon checks, migrates and locks its databases before it is ready; Fastify has none."],
    machine,
    segmentMs: settings.segmentMs,
    outcomes,
    tables: rounds === undefined ? [] : [tableOf(rounds)],
    bars: bars.map((bar, at) => judgeBar(bar, ratios?.[at])),
  };
}

function ms(round: Round, segment: string): number {
  return round.get(segment)?.ms ?? Number.NaN;
}

function rss(round: Round, segment: string): number {
  return round.get(segment)?.rssMiB ?? Number.NaN;
}

function tableOf(rounds: readonly Round[]) {
  const row = (
    what: string,
    ours: (round: Round) => number,
    theirs: (round: Round) => number,
    unit: typeof formatMs,
  ) => [
    what,
    formatSummary(summarise(rounds.map(ours)), unit),
    formatSummary(summarise(rounds.map(theirs)), unit),
    formatSummary(summarise(rounds.map((round) => ours(round) / theirs(round))), formatRatio),
  ];
  return {
    caption: "A daemon at rest",
    columns: ["what", "claudemesh", "beside it", "ratio"],
    rows: [
      row(
        "memory, MiB; Fastify",
        (round) => rss(round, "daemon"),
        (round) => rss(round, "fastify"),
        formatRate,
      ),
      row(
        "start, ms; Fastify",
        (round) => ms(round, "daemon"),
        (round) => ms(round, "fastify"),
        formatRate,
      ),
      row(
        "one send, ms; node -e 0",
        (round) => ms(round, "send"),
        (round) => ms(round, "node"),
        formatRate,
      ),
    ],
  };
}

class FootprintWorld {
  readonly #settings: RunSettings;
  readonly #product: BuiltProduct;
  readonly #home: string;
  readonly #env: NodeJS.ProcessEnv;

  constructor(settings: RunSettings, product: BuiltProduct) {
    this.#settings = settings;
    this.#product = product;
    this.#home = join(settings.folder, "home");
    this.#env = { ...process.env, CLAUDEMESH_HOME: this.#home, XDG_CACHE_HOME: product.cacheHome };
    mkdirSync(this.#home);
    const paths = meshPaths(this.#home, "bench");
    ensureMeshDir(paths);
    writeKeyFile(paths.keypair, generateMemberKeys());
    const id = "01890a5d-ac96-774b-bcce-b302099a8057";
    writeMeshConfig(paths, { id, name: "bench", broker: "http://127.0.0.1:1", member_name: "bench" });
  }

  /** Fills both compile caches. */
  async warmUp(): Promise<void> {
    for (let time = 0; time < 2; time++) {
      await this.fastify();
      await this.daemon();
      await this.send();
    }
  }

  async fastify(): Promise<Figures> {
    const script = join(import.meta.dirname, "../layers/minimal-fastify.mjs");
    const args = [script, join(this.#home, "fastify.sock"), join(this.#settings.folder, "fastify-cache")];
    return this.#startAndStop({ command: process.execPath, args, env: this.#env });
  }

  daemon(): Promise<Figures> {
    return this.#startAndStop(this.#daemonSpec());
  }

  async node(): Promise<Figures> {
    return { ms: await timeRuns({ command: process.execPath, args: ["-e", "0"], env: this.#env }, sendsPerRound) };
  }

  async send(): Promise<Figures> {
    const { stop } = await startTimed(this.#daemonSpec(), this.#settings.closing);
    const args = ["send", "#bench", "hello"];
    const ms = await timeRuns({ command: this.#product.launcher, args, env: this.#env }, sendsPerRound);
    await stop();
    return { ms };
  }

  #daemonSpec(): ProcessSpec {
    return { command: this.#product.launcher, args: ["daemon", "up", "--foreground", "--json"], env: this.#env };
  }

  async #startAndStop(spec: ProcessSpec): Promise<Figures> {
    const { readyMs, rssMiB, stop } = await startTimed(spec, this.#settings.closing);
    await stop();
    return { ms: readyMs, rssMiB };
  }
}

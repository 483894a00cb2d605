// A report for tests, without what its rounds brought.
import type { ScenarioReport } from "../scenarios/scenario.ts";

export const exampleReport = {
  scenario: "broker-accept",
  title: "Accepts",
  conditions: ["1 KiB messages"],
  durability: ["one flush per commit"],
  machine: {
    cpu: "Some CPU",
    cores: 2,
    memoryGiB: 4,
    kernel: "Linux 6",
    node: "v24",
    sqlite: "3.53",
    fastify: "5",
    fileSystem: "ext4",
    loadAverageBefore: 0.1,
  },
  segmentMs: 2_000,
} as const satisfies Partial<ScenarioReport>;

export const exampleTable = { caption: "64 callers", columns: ["sends", "ours"], rows: [["topic", "9,000"]] };

// Whose turn it is in a sweep, with a store that only says what it was asked.
import { expect, test } from "vitest";
import { type SweepPorts, sweep } from "./sweep.ts";

type Work = { readonly removing?: number; readonly forgetting?: number };

/** Meshes with so many steps of work each, in their order; `asked` has a line for each step. */
function createPorts(work: ReadonlyMap<string, Work>): { ports: SweepPorts; asked: string[] } {
  const asked: string[] = [];
  const left = new Map([...work].map(([id, { removing = 1, forgetting = 1 }]) => [id, { removing, forgetting }]));
  const step = (meshId: string, kind: keyof Required<Work>) => {
    asked.push(`${kind} ${meshId}`);
    const mesh = left.get(meshId);
    if (mesh === undefined) throw new Error(`there is no mesh ${meshId}`);
    mesh[kind] -= 1;
    return mesh[kind] > 0;
  };
  const housekeeping: SweepPorts["store"]["housekeeping"] = {
    meshes: async (after, limit) => [...work.keys()].filter((id) => id > after).slice(0, limit),
    sweepMesh: async (meshId) => ({ counts: {}, more: step(meshId, "removing") }),
    forgetIds: async (meshId) => ({ counts: {}, next: step(meshId, "forgetting") ? "later" : undefined }),
  };
  const store = { housekeeping, presence: { sweep: async () => 0 }, sweepLimiter: async () => 0 };
  return { ports: { store, nowMs: () => 1, messageRetentionMs: 1, dedupeRetentionMs: 1 }, asked };
}

async function runSweep(ports: SweepPorts): Promise<void> {
  for await (const _ of sweep(ports, { forgetting: true }));
}

test("a mesh with much to remove or to look through gives every other its turn, and is finished all the same", async () => {
  const { ports, asked } = createPorts(
    new Map([
      ["a", { removing: 3 }],
      ["b", { forgetting: 3 }],
      ["c", {}],
    ]),
  );
  await runSweep(ports);
  const turns = ["a", "b", "c"];
  expect(asked.slice(0, 3)).toEqual(turns.map((id) => `removing ${id}`));
  expect(asked.slice(3, 6)).toEqual(["removing a", "forgetting b", "forgetting c"]);
  expect(asked.slice(6)).toEqual(["removing a", "forgetting b", "forgetting a", "forgetting b"]);
});

test("meshes beyond the first page wait for no mesh of that page", async () => {
  const ids = Array.from({ length: 1_000 }, (_, n) => String(n).padStart(4, "0"));
  const { ports, asked } = createPorts(new Map(ids.map((id) => [id, id === "0000" ? { removing: 500 } : {}])));
  await runSweep(ports);
  const before = asked.slice(0, asked.indexOf("forgetting 0999"));
  expect(before.filter((line) => line === "removing 0000").length).toBeLessThan(10);
  expect(asked).toHaveLength(2 * ids.length + 499);
});

// What a transaction with the spaces cache around it asks the store for, and what it keeps after its writes.
import type { Footprint } from "@claudemesh/protocol/spaces/footprint";
import { Work } from "@claudemesh/protocol/spaces/work";
import { describe, expect, test } from "vitest";
import type { Branch } from "../../core/branch-lineage.ts";
import { ready, runSync } from "../../ports/flow.ts";
import type { SpaceRow, WriteAsk } from "../../ports/rows.ts";
import type { AcceptedWrites } from "../../ports.ts";
import { nothingWritten } from "../../services/commit/record.ts";
import { cachedTransaction, type PlainTransaction } from "./cached-transaction.ts";
import { SpaceCache, SpaceCacheOverlay } from "./space-cache.ts";

const main: Branch = { name: "", lineage: [], createdSeq: 0, deletedSeq: undefined };
const touched: Footprint = [{ kind: "write", path: ["value"], covers: true }];

/** A store that notes what it is asked for, and has nothing but its branches. */
function startAt(lastSeq: number, cache = new SpaceCache()) {
  const asked: string[] = [];
  const note = <T>(name: string, answer: T) => {
    asked.push(name);
    return ready(() => answer);
  };
  const space = { spaceId: "s", lastSeq } as SpaceRow;
  const plain: Partial<PlainTransaction> = {
    entitiesPerLook: 128,
    lockSpace: () => note("lock", space),
    lockSession: () => note("session", undefined),
    findBranches: (names) =>
      note(
        `branches ${names}`,
        names.map((name) => ({ ...main, name })),
      ),
    readTails: (asks) =>
      note(
        `tails ${asks.map(({ entityId }) => entityId)}`,
        asks.map(() => ({ snapshot: undefined, revisions: [] })),
      ),
    readWrites: (asks) =>
      note(
        `writes ${asks.map(({ entityId }) => entityId)}`,
        asks.map(() => ({ writes: [], cut: false })),
      ),
    readLayers: (_, asks) =>
      note(
        `layers ${asks.map(({ entityId }) => entityId)}`,
        asks.map(() => []),
      ),
    writeAccepted: () => note("write", undefined),
    undoToMark: () => note("undo", undefined),
  };
  const overlay = new SpaceCacheOverlay(cache);
  return { cache, overlay, asked, tx: cachedTransaction(plain as PlainTransaction, overlay) };
}

/** A commit of one write to the entity. */
function commitOf(seq: number, entityId: string, parts: Partial<AcceptedWrites> = {}): AcceptedWrites {
  const state = { seq, document: { value: seq }, replayed: 0, replayWork: 0 };
  const changes = [{ entityId, state, footprints: [touched], characters: 10 }];
  return { ...nothingWritten, changes, commit: { seq, branch: "" }, ...parts } as unknown as AcceptedWrites;
}

/** As after a transaction that committed one write to a:1 at seq 4. */
function filledAt4(): SpaceCache {
  const { cache, overlay, tx } = startAt(3);
  runSync(tx.lockSpace());
  runSync(tx.writeAccepted(commitOf(4, "a:1")));
  cache.adopt(overlay);
  return cache;
}

const ofMain = (entityId: string) => ({ entityId, branch: main });
const writesOf = (entityId: string): WriteAsk => ({ entityId, branch: "", afterSeq: 3, upTo: 4 });

describe("a transaction with the spaces cache around it", () => {
  test("asks the store for what is not cached alone, and answers in the order of the asks", () => {
    const { tx, asked } = startAt(4, filledAt4());
    runSync(tx.lockSpace());
    const states = runSync(tx.present.states([ofMain("b:1"), ofMain("a:1"), ofMain("c:1")], 4, new Work()));
    expect(states.map((state) => state?.seq)).toEqual([undefined, 4, undefined]);
    const later = runSync(tx.present.laterWrites([writesOf("a:1"), writesOf("b:1")], new Work()));
    expect(later.map(({ writes }) => writes.map(({ seq }) => seq))).toEqual([[4], []]);
    const layers = runSync(tx.present.layers("", [{ entityId: "a:1", seq: 4 }], new Work()));
    expect(layers).toEqual([[touched]]);
    expect(asked).toEqual(["lock", "tails b:1,c:1", "writes b:1"]);
  });

  test("asks for a branch once", () => {
    const { tx, asked } = startAt(4);
    runSync(tx.lockSpace());
    for (const names of [["draft"], ["", "draft"]]) runSync(tx.present.branches(names));
    expect(asked).toEqual(["lock", "branches draft", "branches "]);
  });

  test("asks for everything where the space has another last seq under its lock (SPC-17)", () => {
    const { tx, asked } = startAt(5, filledAt4());
    runSync(tx.lockSpace());
    runSync(tx.present.states([ofMain("a:1")], 5, new Work()));
    expect(asked).toEqual(["lock", "tails a:1"]);
  });

  test("does not answer from the cache how far an ancestor shows through", () => {
    const { tx, asked } = startAt(4, filledAt4());
    runSync(tx.lockSpace());
    runSync(tx.present.laterWrites([{ ...writesOf("a:1"), afterSeq: 2, upTo: 3 }], new Work()));
    expect(asked).toEqual(["lock", "writes a:1"]);
  });

  test("sees its own commits, and asks for everything once they are undone", () => {
    const { tx, asked } = startAt(4, filledAt4());
    runSync(tx.lockSpace());
    runSync(tx.writeAccepted(commitOf(5, "a:1")));
    expect(runSync(tx.present.states([ofMain("a:1")], 5, new Work()))[0]?.seq).toBe(5);
    runSync(tx.undoToMark());
    runSync(tx.present.states([ofMain("a:1")], 4, new Work()));
    expect(asked).toEqual(["lock", "write", "undo", "tails a:1"]);
  });

  test("keeps nothing over a commit that makes or deletes a branch", () => {
    for (const parts of [{ createdBranch: main }, { deletedBranch: "draft" }]) {
      const { tx, asked } = startAt(4, filledAt4());
      runSync(tx.lockSpace());
      runSync(tx.writeAccepted({ ...commitOf(5, "a:1"), changes: [], ...parts }));
      runSync(tx.present.branches([""]));
      runSync(tx.present.states([ofMain("a:1")], 5, new Work()));
      expect(asked).toEqual(["lock", "write", "branches ", "tails a:1"]);
    }
  });

  test("sends the lock when it is asked for, ahead of what travels behind it", () => {
    const { tx, asked } = startAt(4);
    tx.lockSpace();
    tx.lockSession("s");
    expect(asked).toEqual(["lock", "session"]);
  });
});

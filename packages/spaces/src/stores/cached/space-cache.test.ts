// What is cached is used at its own seq and at no other, and only after the transaction that added it was committed.
import type { Footprint } from "@claudemesh/protocol/spaces/footprint";
import { describe, expect, test } from "vitest";
import type { EntityChange } from "../../core/entity-history.ts";
import { SpaceCache, SpaceCacheOverlay } from "./space-cache.ts";

const touched: Footprint = [{ kind: "write", path: ["value"], covers: true }];

function change(entityId: string, seq: number, operations = 1, characters = 10): EntityChange {
  const state = { seq, document: { value: seq }, replayed: 0, replayWork: 0 };
  return { entityId, state, footprints: Array.from({ length: operations }, () => touched), characters };
}

/** A space of which commits up to `seq` are cached, each on one entity. */
function filledUpTo(seq: number, id = "a:1"): SpaceCache {
  const cache = new SpaceCache();
  const draft = new SpaceCacheOverlay(cache);
  draft.checkSeq(0);
  for (let next = 1; next <= seq; next += 1) draft.addCommit(next, "", [change(id, next)]);
  cache.adopt(draft);
  return cache;
}

describe("what is cached of a space", () => {
  test("is used at the seq that it was cached at", () => {
    const draft = new SpaceCacheOverlay(filledUpTo(3));
    draft.checkSeq(3);
    expect(draft.state("", "a:1")).toMatchObject({ seq: 3 });
    expect(draft.writes("", "a:1", 1)?.map(({ seq }) => seq)).toEqual([3, 2]);
    expect(draft.layer("", "a:1", 2)).toEqual([touched]);
    expect(draft.state("draft", "a:1")).toBeUndefined();
  });

  test("can be noted as it was read, and is built upon like what was written here", () => {
    const cache = new SpaceCache();
    const draft = new SpaceCacheOverlay(cache);
    draft.checkSeq(7);
    draft.addWrites("", "a:1", 4, [
      { seq: 6, footprint: touched },
      { seq: 5, footprint: touched },
    ]);
    expect(draft.state("", "a:1")).toBeUndefined();
    expect(draft.writes("", "a:1", 5)?.map(({ seq }) => seq)).toEqual([6]);
    expect(draft.writes("", "a:1", 3)).toBeUndefined();
    draft.addState("", "a:1", { seq: 6, document: { value: 6 }, replayed: 1, replayWork: 0 }, 10);
    draft.addState("", "a:2", { seq: 2, document: { value: 2 }, replayed: 0, replayWork: 0 }, 10);
    draft.addCommit(8, "", [change("a:1", 8), change("a:2", 8)]);
    cache.adopt(draft);
    const next = new SpaceCacheOverlay(cache);
    next.checkSeq(8);
    expect(next.writes("", "a:1", 4)?.map(({ seq }) => seq)).toEqual([8, 6, 5]);
    expect(next.writes("", "a:2", 7)?.map(({ seq }) => seq)).toEqual([8]);
    expect(next.writes("", "a:2", 6)).toBeUndefined();
  });

  test("is forgotten where the space has another last seq, before or behind", () => {
    for (const lastSeq of [2, 4]) {
      const draft = new SpaceCacheOverlay(filledUpTo(3));
      draft.checkSeq(lastSeq);
      expect(draft.state("", "a:1")).toBeUndefined();
      expect(draft.writes("", "a:1", 3)).toBeUndefined();
    }
  });

  test("says nothing about writes before those that it saw", () => {
    const cache = new SpaceCache();
    const draft = new SpaceCacheOverlay(cache);
    draft.checkSeq(5);
    draft.addCommit(6, "", [change("a:1", 6)]);
    expect(draft.writes("", "a:1", 5)?.map(({ seq }) => seq)).toEqual([6]);
    expect(draft.writes("", "a:1", 4)).toBeUndefined();
    expect(draft.layer("", "a:1", 5)).toBeUndefined();
  });

  test("holds nothing of a transaction that was not kept", () => {
    const cache = filledUpTo(3);
    const lost = new SpaceCacheOverlay(cache);
    lost.checkSeq(3);
    lost.addCommit(4, "", [change("a:1", 4)]);
    expect(lost.state("", "a:1")).toMatchObject({ seq: 4 });
    const next = new SpaceCacheOverlay(cache);
    next.checkSeq(3);
    expect(next.state("", "a:1")).toMatchObject({ seq: 3 });
  });

  test("is not mixed with a draft that began from another state of it", () => {
    const cache = filledUpTo(3, "a:1");
    const late = new SpaceCacheOverlay(cache);
    late.checkSeq(3);
    const first = new SpaceCacheOverlay(cache);
    first.checkSeq(3);
    first.addCommit(4, "", [change("b:1", 4)]);
    cache.adopt(first);
    late.addCommit(4, "", [change("c:1", 4)]);
    cache.adopt(late);
    const draft = new SpaceCacheOverlay(cache);
    draft.checkSeq(4);
    expect(draft.state("", "b:1")).toBeUndefined();
    expect(draft.state("", "c:1")).toMatchObject({ seq: 4 });
  });

  test("forgets the oldest commits whole, and what was written longest ago", () => {
    const draft = new SpaceCacheOverlay(new SpaceCache());
    draft.checkSeq(0);
    for (let seq = 1; seq <= 50; seq += 1) draft.addCommit(seq, "", [change("a:1", seq, 3)]);
    const oldest = draft.writes("", "a:1", 50 - 21)?.at(-1)?.seq;
    expect(oldest).toBe(30);
    expect(draft.writes("", "a:1", 10)).toBeUndefined();
    expect(draft.layer("", "a:1", 30)).toHaveLength(3);

    const cache = new SpaceCache();
    const many = new SpaceCacheOverlay(cache);
    many.checkSeq(0);
    for (let seq = 1; seq <= 8; seq += 1) many.addCommit(seq, "", [change(`big:${seq}`, seq, 1, 300_000)]);
    cache.adopt(many);
    const after = new SpaceCacheOverlay(cache);
    after.checkSeq(8);
    const kept = [1, 2, 3, 4, 5, 6, 7, 8].filter((seq) => after.state("", `big:${seq}`) !== undefined);
    expect(kept).toEqual([6, 7, 8]);
  });
});

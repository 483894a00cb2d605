// What the feed knows, and that it knows what it does not know.
import { describe, expect, it } from "vitest";
import { type ChangedEntities, ChangeFeed } from "./change-feed.ts";

const change = (seq: number, branch = "", ...entityIds: string[]) => ({ seq, branch, entityIds });
const known = (changed: ChangedEntities) => changed.type === "known" && [...changed.ids];
const unknown = { type: "unknown" };

describe("a change feed", () => {
  it("names what a branch wrote between two seqs, each entity once", () => {
    const feed = new ChangeFeed(10);
    feed.add(change(11, "", "a:1", "a:2"));
    feed.add(change(12, "draft", "b:1"));
    feed.add(change(13, "", "a:2"));
    expect(known(feed.changedOn("", 10, 13))).toEqual(["a:1", "a:2"]);
    expect(known(feed.changedOn("", 11, 13))).toEqual(["a:2"]);
    expect(known(feed.changedOn("draft", 10, 13))).toEqual(["b:1"]);
    expect(known(feed.changedOn("", 13, 13))).toEqual([]);
  });

  it("does not know what was before it, nor what is behind a gap", () => {
    const feed = new ChangeFeed(10);
    feed.add(change(12, "", "a:12"));
    expect(feed.upTo).toBe(10);
    expect(feed.changedOn("", 9, 10)).toEqual(unknown);
    expect(feed.changedOn("", 10, 12)).toEqual(unknown);
    feed.add(change(11, "", "a:11"));
    expect(known(feed.changedOn("", 10, 12))).toEqual(["a:11", "a:12"]);
  });

  it("takes a change that comes again, or late, for what it knows already", () => {
    const feed = new ChangeFeed(1);
    for (const seq of [2, 2, 3, 1, 2]) feed.add(change(seq, "", `a:${seq}`));
    expect(known(feed.changedOn("", 1, 3))).toEqual(["a:2", "a:3"]);
  });

  it("forgets what was skipped, and goes on behind it", () => {
    const feed = new ChangeFeed(1);
    feed.add(change(2, "", "a:2"));
    feed.add(change(9, "", "a:9"));
    feed.skipTo(8);
    expect(feed.changedOn("", 2, 8)).toEqual(unknown);
    feed.add(change(10, "", "a:10"));
    expect(known(feed.changedOn("", 8, 10))).toEqual(["a:9", "a:10"]);
  });

  it("keeps a bounded past", () => {
    const feed = new ChangeFeed(0);
    for (let seq = 1; seq <= 5_000; seq += 1) feed.add(change(seq, "", `a:${seq}`));
    expect(feed.upTo).toBe(5_000);
    expect(feed.changedOn("", 2_999, 5_000)).toEqual(unknown);
    expect(known(feed.changedOn("", 3_000, 5_000))).toHaveLength(2_000);
    feed.add({ seq: 5_001, branch: "", entityIds: Array.from({ length: 60_000 }, (_, n) => `b:${n}`) });
    expect(feed.changedOn("", 5_000, 5_001)).toEqual(unknown);
    expect(known(feed.changedOn("", 5_001, 5_001))).toEqual([]);
  });
});

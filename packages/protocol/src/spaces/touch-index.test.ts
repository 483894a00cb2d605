// SPC-2: the index of later writes says of every read what comparing it with each of them says.
import { expect, test } from "vitest";
import { applyIfFits, entityId, randomDocument, randomPatch, randomRead, seededPick } from "../testing/random-edits.ts";
import type { EntityDocument } from "./entity.ts";
import { footprintOverlaps } from "./footprint.ts";
import type { Footprint } from "./touch.ts";
import { TouchIndex } from "./touch-index.ts";
import { Work } from "./work.ts";

test("the newest write that overlaps a read is the same by the index and one by one", () => {
  const found = { overlapping: 0, shallow: 0, none: 0, moved: 0 };
  for (let seed = 1; seed <= 600; seed += 1) {
    const pick = seededPick(seed);
    let document: EntityDocument | undefined = randomDocument(pick);
    const index = new TouchIndex(new Work());
    const writes: { readonly seq: number; readonly footprint: Footprint }[] = [];
    for (let seq = 1; seq <= 8; seq += 1) {
      const edited = applyIfFits(document, { op: "patch", id: entityId, patches: [randomPatch(pick, document)] });
      if (edited === undefined) continue;
      writes.push({ seq, footprint: edited.footprint });
      index.add(seq, edited.footprint);
      if (edited.footprint.some(({ kind }) => kind === "move")) found.moved += 1;
      document = edited.document;
    }
    for (let n = 0; n < 20; n += 1) {
      const read = randomRead(pick, document);
      const newest = writes.findLast(({ footprint }) => footprintOverlaps(footprint, read))?.seq ?? 0;
      expect(index.newestOverlap(read), JSON.stringify({ read, writes })).toBe(newest);
      if (newest === 0) found.none += 1;
      else found[read.shallow === true ? "shallow" : "overlapping"] += 1;
    }
  }
  for (const [met, times] of Object.entries(found)) expect(times, met).toBeGreaterThan(100);
});

// Reads the present of a space inside a transaction, from the store. How much is looked for at once follows from what was
// found, so that no statement brings very much.
import type { Footprint } from "@claudemesh/protocol/spaces/footprint";
import { workCosts } from "@claudemesh/protocol/spaces/work";
import { type LaterWrites, readFootprint } from "../core/stale-reads.ts";
import type { RowBound, Write } from "../ports/rows.ts";
import type { PresentReads, SpaceView } from "../ports.ts";
import { readEntities } from "./read-entities.ts";

/** More later writes of one entity than these are not looked through. */
const writesLookedAt: RowBound = { rows: 1_000, bytes: 524_288 };

/** Entities whose writes are looked for at once; more at once where what was found is small. */
const firstLook = 64;
const largestLook = 1_024;
const smallLookCharacters = 262_144;
/** Layers of pending reads looked for at once, each of which may be as large as a commit. */
const layersPerLook = 64;

export function presentReads(view: SpaceView): PresentReads {
  return {
    branches: (names) => view.findBranches(names),
    states: (asks, lastSeq, work) =>
      readEntities(
        view,
        asks.map((ask) => ({ ...ask, atSeq: lastSeq })),
        work,
      ),
    laterWrites: function* (asks, work) {
      const found: LaterWrites[] = [];
      const most = Math.min(largestLook, view.entitiesPerLook);
      for (let look = Math.min(firstLook, most); found.length < asks.length; ) {
        const some = asks.slice(found.length, found.length + look);
        work.spend(some.length * workCosts.row);
        let characters = 0;
        for (const { writes, cut } of yield* view.readWrites(some, writesLookedAt)) {
          const length = charactersOf(writes);
          characters += length;
          work.spend(length * workCosts.character);
          found.push({
            writes: writes.map(({ seq, footprint }) => ({ seq, footprint: readFootprint(footprint) })),
            cut,
          });
        }
        look = characters <= smallLookCharacters ? Math.min(look * 2, most) : Math.min(firstLook, most);
      }
      return found;
    },
    layers: function* (branch, asks, work) {
      const layers: Footprint[][] = [];
      const look = Math.min(layersPerLook, view.entitiesPerLook);
      for (let at = 0; at < asks.length; at += look) {
        const some = asks.slice(at, at + look);
        work.spend(some.length * workCosts.row);
        for (const writes of yield* view.readLayers(branch, some)) {
          work.spend(charactersOf(writes) * workCosts.character);
          layers.push(writes.map(({ footprint }) => readFootprint(footprint)));
        }
      }
      return layers;
    },
  };
}

function charactersOf(writes: readonly Write[]): number {
  return writes.reduce((sum, { footprint }) => sum + footprint.length, 0);
}

// The change feed of one space in this process: fed by the commits that are made here, and from the log where others
// have committed. All sessions that watch the space share it.
import { parseOwnJsonText } from "@claudemesh/protocol/json";
import { type ChangedEntities, ChangeFeed, type SpaceChange } from "../../core/change-feed.ts";
import type { CommitRow, SpaceRef } from "../../ports/rows.ts";
import type { SpacesStore } from "../../ports.ts";

/** A session that is further behind looks at the entities instead, which takes no longer. */
const commitsPerLook = 200;
const bytesPerLook = 1_048_576;

export class SpaceFeed {
  readonly #store: SpacesStore;
  readonly #space: SpaceRef;
  #feed: ChangeFeed | undefined;
  #reading: Promise<void> = Promise.resolve();

  constructor(store: SpacesStore, space: SpaceRef) {
    this.#store = store;
    this.#space = space;
  }

  /** A commit that was made here. */
  add(change: SpaceChange): void {
    this.#feed?.add(change);
  }

  /** Collects changes from this seq on, which the space has reached. */
  begin(seq: number): void {
    this.#feed ??= new ChangeFeed(seq);
  }

  /** Call it with a seq that the space has reached. */
  async changedOn(branch: string, afterSeq: number, upTo: number): Promise<ChangedEntities> {
    this.begin(upTo);
    if ((this.#feed?.upTo ?? 0) < upTo) await this.#reach(upTo);
    return this.#feed?.changedOn(branch, afterSeq, upTo) ?? { type: "unknown" };
  }

  async #reach(seq: number): Promise<void> {
    this.#reading = this.#reading.then(() => this.#readLog(seq));
    await this.#reading;
  }

  async #readLog(seq: number): Promise<void> {
    const feed = this.#feed;
    if (feed === undefined || feed.upTo >= seq) return;
    if (seq - feed.upTo <= commitsPerLook) {
      const after = feed.upTo;
      const bound = { rows: commitsPerLook, bytes: bytesPerLook };
      const rows = await this.#store.read(this.#space, (view) => view.readLog({ after }, bound));
      for (const row of rows) feed.add(changeOf(row));
    }
    if (feed.upTo < seq) feed.skipTo(seq);
  }
}

function changeOf({ seq, branch, original }: CommitRow): SpaceChange {
  const { operations = [] } = parseOwnJsonText(original) as { operations?: readonly { readonly id: string }[] };
  return { seq, branch, entityIds: operations.map(({ id }) => id) };
}

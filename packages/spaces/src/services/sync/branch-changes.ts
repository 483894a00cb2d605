// What changed on a branch between two seqs among what is watched, cut into pieces that fit into frames. Looks only at
// what the feed names where that is known, else at everything watched.
import { encodeFabric } from "@claudemesh/protocol/spaces/fabric-value";
import type { SyncUpsert } from "@claudemesh/protocol/wire/spaces-operations";
import type { Watched } from "../../core/watched.ts";
import type { SpaceRef } from "../../ports/rows.ts";
import type { SpacesStore } from "../../ports.ts";
import { changesByPrefix, changesOfIds } from "../changes.ts";
import type { FoundEntity } from "../query.ts";
import { type NextTurn, ReadPace } from "../read-pace.ts";
import type { SpaceFeed } from "./space-feed.ts";

/** Read at once at most. */
const idsPerRead = 32;
/** Of documents in one frame; a single one always fits. */
const frameCharacters = 1_048_576;

export type FramePiece = { readonly upserts: readonly SyncUpsert[]; readonly isLast: boolean };

type Span = { readonly branch: string; readonly sinceSeq: number; readonly atSeq: number };

export class BranchChanges {
  readonly #ports: { readonly store: SpacesStore };
  readonly #space: SpaceRef;
  readonly #feed: SpaceFeed | undefined;
  readonly #span: Span;
  readonly #pace: ReadPace;

  constructor(store: SpacesStore, space: SpaceRef, feed: SpaceFeed | undefined, span: Span, nextTurn?: NextTurn) {
    this.#ports = { store };
    this.#space = space;
    this.#feed = feed;
    this.#span = span;
    this.#pace = new ReadPace(idsPerRead, nextTurn);
  }

  /** At least one piece; `isLast` is true for the last one. */
  async *frames(watched: Watched): AsyncGenerator<FramePiece> {
    let upserts: SyncUpsert[] = [];
    let room = frameCharacters;
    for await (const { upsert, characters } of this.#upserts(watched)) {
      if (characters > room && upserts.length > 0) {
        yield { upserts: upserts.toSorted(bySeq), isLast: false };
        upserts = [];
        room = frameCharacters;
      }
      upserts.push(upsert);
      room -= characters;
    }
    yield { upserts: upserts.toSorted(bySeq), isLast: true };
  }

  async *#upserts(watched: Watched): AsyncGenerator<SizedUpsert> {
    const { branch, sinceSeq, atSeq } = this.#span;
    const changed = await this.#feed?.changedOn(branch, sinceSeq, atSeq);
    if (changed?.type === "known") {
      yield* this.#ofIds([...changed.ids].filter((id) => watched.has(id)));
      return;
    }
    yield* this.#ofIds(watched.idsAlone());
    for (const prefix of watched.prefixes) yield* this.#ofPrefix(prefix);
  }

  async *#ofIds(ids: readonly string[]): AsyncGenerator<SizedUpsert> {
    for (let from = 0; from < ids.length; ) {
      const start = from;
      const { items, read } = await this.#pace.next((size, work) => {
        return changesOfIds(this.#ports, this.#space, { ...this.#span, work }, ids.slice(start, start + size));
      });
      from += read;
      yield* items.map(toUpsert);
    }
  }

  async *#ofPrefix(prefix: string): AsyncGenerator<SizedUpsert> {
    let cursor: string | undefined;
    do {
      const page = await this.#pace.next((limit, work) =>
        changesByPrefix(this.#ports, this.#space, { ...this.#span, prefix, cursor, limit, work }),
      );
      yield* page.items.map(toUpsert);
      cursor = page.nextCursor;
    } while (cursor !== undefined);
  }
}

type SizedUpsert = { readonly upsert: SyncUpsert; readonly characters: number };

function toUpsert({ branch, id, seq, document }: FoundEntity): SizedUpsert {
  if (document === undefined) return { upsert: { branch, id, seq, deleted: true }, characters: id.length };
  const encoded = encodeFabric(document);
  return { upsert: { branch, id, seq, document: encoded }, characters: JSON.stringify(encoded).length };
}

function bySeq(a: SyncUpsert, b: SyncUpsert): number {
  return a.seq - b.seq;
}

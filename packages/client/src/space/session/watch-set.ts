// What a session watches on one branch: ids and prefixes, those that are live already and those still being loaded. A
// round of loading is one watch from the branch's seq on, and queries as of that same seq for what is new, so that the
// new entities join the snapshot of the others. This file makes messages and sends none.
import { type BranchId, type EntityId, spaceLimits } from "@claudemesh/protocol/spaces/entity";
import type { SpaceRequestType } from "../space-wire.ts";
import type { EntityRecord } from "../sync-frame.ts";

export type WatchMessage = {
  readonly type: SpaceRequestType;
  readonly input: object;
  /** Absent for the watch itself. */
  readonly part?: QueryPart;
};

export type QueryPart =
  | { readonly ids: readonly EntityId[] }
  | { readonly prefix: string; readonly cursor?: string | undefined };

/** One round that has all its answers. */
export type LoadedRound = {
  readonly ids: readonly EntityId[];
  readonly prefixes: readonly string[];
  readonly records: readonly EntityRecord[];
  /** Everything up to this seq was delivered before the watch was answered. */
  readonly seq: number;
};

/** What became of an id that is needed: it is watched, and `dropped` made room for it, or there is no room. */
type WatchAdmission = { readonly type: "watched"; readonly dropped: readonly EntityId[] } | { readonly type: "full" };

type Round = {
  readonly number: number;
  readonly atSeq: number;
  readonly ids: readonly EntityId[];
  readonly prefixes: readonly string[];
  readonly records: EntityRecord[];
  watchedSeq: number | undefined;
  openQueries: number;
};

type NameState = "wanted" | "live";

export class WatchSet {
  readonly branch: BranchId;
  /** In the order of their last use. */
  readonly #ids = new NameStates();
  readonly #prefixes = new NameStates();
  readonly #isPinned: (id: EntityId) => boolean;
  #round: Round | undefined;
  #rounds = 0;
  /** The watch at the server is out of date, though nothing new is wanted. */
  #mustWatch = false;

  /** `isPinned`: the entity has a subscriber or own work on it, and is never dropped to make room. */
  constructor(branch: BranchId, isPinned: (id: EntityId) => boolean) {
    this.branch = branch;
    this.#isPinned = isPinned;
  }

  get isEmpty(): boolean {
    return this.#ids.size === 0 && this.#prefixes.size === 0;
  }

  get hasLive(): boolean {
    return this.#ids.hasLive || this.#prefixes.hasLive;
  }

  isWatched(id: EntityId): boolean {
    return this.#ids.has(id) || this.#underPrefix(id, undefined);
  }

  isLive(id: EntityId): boolean {
    return this.#ids.get(id) === "live" || this.#underPrefix(id, "live");
  }

  /** An id is needed: it is watched from now on, if there is room. */
  want(id: EntityId): WatchAdmission {
    if (this.#ids.has(id)) {
      this.#ids.touch(id);
      return { type: "watched", dropped: [] };
    }
    if (this.#underPrefix(id, undefined)) return { type: "watched", dropped: [] };
    const admission = this.#makeRoom();
    if (admission.type === "watched") this.#ids.set(id, "wanted");
    return admission;
  }

  wantPrefix(prefix: string): boolean {
    if (!this.#prefixes.has(prefix)) {
      if (this.#prefixes.size >= spaceLimits.watchedPrefixes) return false;
      this.#prefixes.set(prefix, "wanted");
    }
    return true;
  }

  /** True if the prefix was watched. */
  unwantPrefix(prefix: string): boolean {
    const isGone = this.#prefixes.delete(prefix);
    this.#mustWatch ||= isGone;
    return isGone;
  }

  /** A new connection knows nothing of the old one's watch. */
  reset(): void {
    this.#round = undefined;
    this.#mustWatch = true;
  }

  /** The next round, if there is something to ask for and no round is in progress. */
  nextRound(atSeq: number): { readonly round: number; readonly messages: readonly WatchMessage[] } | undefined {
    const isNeeded = this.#ids.hasWanted || this.#prefixes.hasWanted || (this.#mustWatch && !this.isEmpty);
    if (this.#round !== undefined || !isNeeded) return undefined;
    const ids = this.#ids.wanted();
    const prefixes = this.#prefixes.wanted();
    this.#mustWatch = false;
    const parts: QueryPart[] = [...chunks(ids, spaceLimits.idsPerQuery).map((some) => ({ ids: some }))];
    parts.push(...prefixes.map((prefix) => ({ prefix })));
    const number = ++this.#rounds;
    const round = { number, atSeq, ids, prefixes, records: [], watchedSeq: undefined, openQueries: parts.length };
    this.#round = round;
    const watch = { branch: this.branch, ids: this.#ids.names(), prefixes: this.#prefixes.names(), seenSeq: atSeq };
    const messages = [{ type: "space.watch" as const, input: watch }, ...parts.map((part) => this.#query(round, part))];
    return { round: number, messages };
  }

  watched(round: number, seq: number): LoadedRound | undefined {
    if (this.#round?.number !== round) return undefined;
    this.#round.watchedSeq = seq;
    return this.#finished(this.#round);
  }

  /** Handles a page of a query; returns more messages where there is a further page. */
  queried(
    round: number,
    part: QueryPart,
    page: { readonly items: readonly EntityRecord[]; readonly nextCursor: string | undefined },
  ): { readonly loaded: LoadedRound | undefined; readonly messages: readonly WatchMessage[] } {
    const current = this.#round;
    if (current?.number !== round) return { loaded: undefined, messages: [] };
    current.records.push(...page.items);
    if ("prefix" in part && page.nextCursor !== undefined) {
      const next = { prefix: part.prefix, cursor: page.nextCursor };
      return { loaded: undefined, messages: [this.#query(current, next)] };
    }
    current.openQueries -= 1;
    return { loaded: this.#finished(current), messages: [] };
  }

  /** These ids are too many for one answer, so two queries ask for them. Undefined where they cannot be split. */
  split(round: number, part: QueryPart): readonly WatchMessage[] | undefined {
    const current = this.#round;
    if (current?.number !== round || !("ids" in part) || part.ids.length < 2) return undefined;
    current.openQueries += 1;
    return chunks(part.ids, Math.ceil(part.ids.length / 2)).map((ids) => this.#query(current, { ids }));
  }

  /** The loaded entities are in the snapshot now. */
  markLive({ ids, prefixes }: LoadedRound): void {
    for (const id of ids) if (this.#ids.has(id)) this.#ids.set(id, "live");
    for (const prefix of prefixes) if (this.#prefixes.has(prefix)) this.#prefixes.set(prefix, "live");
  }

  /** The round cannot be finished. Returns its ids and prefixes, which are not watched any more. */
  fail(round: number): { readonly ids: readonly EntityId[]; readonly prefixes: readonly string[] } | undefined {
    const failed = this.#round;
    if (failed?.number !== round) return undefined;
    this.#round = undefined;
    for (const id of failed.ids) this.#ids.delete(id);
    for (const prefix of failed.prefixes) this.#prefixes.delete(prefix);
    return failed;
  }

  /** The round has to be tried again. */
  abandon(round: number): boolean {
    if (this.#round?.number !== round) return false;
    this.reset();
    return true;
  }

  isInRound(round: number): boolean {
    return this.#round?.number === round;
  }

  /** The server does not report its changes any more: the entity has to be loaded again if it is needed. */
  lapse(id: EntityId): void {
    if (this.#ids.has(id)) this.#ids.set(id, "wanted");
  }

  #query(round: Round, part: QueryPart): WatchMessage {
    const at = { branch: this.branch, atSeq: round.atSeq, limit: spaceLimits.pageItems };
    const input = "ids" in part ? { ...at, ids: part.ids } : { ...at, ...part };
    return { type: "space.query", input, part };
  }

  #finished(round: Round): LoadedRound | undefined {
    if (round.watchedSeq === undefined || round.openQueries > 0) return undefined;
    this.#round = undefined;
    return { ids: round.ids, prefixes: round.prefixes, records: round.records, seq: round.watchedSeq };
  }

  #underPrefix(id: EntityId, state: NameState | undefined): boolean {
    for (const [prefix, each] of this.#prefixes.entries()) {
      if (id.startsWith(prefix) && (state === undefined || each === state)) return true;
    }
    return false;
  }

  #makeRoom(): WatchAdmission {
    if (this.#ids.size < spaceLimits.watchedIds) return { type: "watched", dropped: [] };
    for (const [id, state] of this.#ids.entries()) {
      if (state !== "live" || this.#isPinned(id)) continue;
      this.#ids.delete(id);
      return { type: "watched", dropped: [id] };
    }
    return { type: "full" };
  }
}

/** Names with their state; the wanted ones are few, and found without a walk over the others. */
class NameStates {
  readonly #all = new Map<string, NameState>();
  readonly #wanted = new Set<string>();

  get size(): number {
    return this.#all.size;
  }

  get hasWanted(): boolean {
    return this.#wanted.size > 0;
  }

  get hasLive(): boolean {
    return this.#all.size > this.#wanted.size;
  }

  has(name: string): boolean {
    return this.#all.has(name);
  }

  get(name: string): NameState | undefined {
    return this.#all.get(name);
  }

  set(name: string, state: NameState): void {
    this.#all.set(name, state);
    if (state === "wanted") this.#wanted.add(name);
    else this.#wanted.delete(name);
  }

  /** Makes it the one that was used last. */
  touch(name: string): void {
    const state = this.#all.get(name);
    if (state === undefined) return;
    this.#all.delete(name);
    this.#all.set(name, state);
  }

  delete(name: string): boolean {
    this.#wanted.delete(name);
    return this.#all.delete(name);
  }

  wanted(): string[] {
    return [...this.#wanted];
  }

  names(): string[] {
    return [...this.#all.keys()];
  }

  entries(): IterableIterator<[string, NameState]> {
    return this.#all.entries();
  }
}

function chunks<T>(items: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, index) =>
    items.slice(index * size, (index + 1) * size),
  );
}

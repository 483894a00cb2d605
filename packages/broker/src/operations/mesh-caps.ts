// How many things of each kind a mesh may have. Creating something new spends a unit of the mesh's budget and has to
// stay under the limit of the mesh. The count is remembered for a moment and grows with what is created
// here, so that creating stays cheap in a mesh with many; brokers side by side may pass a limit by what the others created
// in that moment.
// Why: docs/decisions/0130.
import type { MembersStore } from "@claudemesh/members/ports";
import type { MeshSettingsService } from "@claudemesh/members/services/mesh-settings";
import type { MessagesStore } from "@claudemesh/messages/ports";
import { MeshError } from "@claudemesh/protocol/errors";
import type { MeshCountKey } from "@claudemesh/protocol/messages/mesh-settings";
import type { SpacesStore } from "@claudemesh/spaces/ports";

export type CountedThing = "topics" | "queues" | "spaces" | "sessions" | "tokens" | "invites";

/** A count that leaves more than half of the limit free is used for longer. */
const rememberedMs = 1_000;
const rememberedWithRoomMs = 30_000;
/** Things are counted again before a refusal, but not before the last count is this old for each thing that it found. */
const recountMsPerThing = 0.01;
const rememberedMax = 4_096;

type Stores = {
  readonly members: Pick<MembersStore, "count">;
  readonly messages: { readonly [Name in "topics" | "queues"]: Pick<MessagesStore[Name], "count"> };
  readonly spaces: Pick<SpacesStore, "count">;
};

type Surroundings = Stores & { readonly settings: Pick<MeshSettingsService, "of">; readonly nowMs: () => number };

/** Includes the things that were allowed here since they were counted. */
type Count = { things: number; readonly atMs: number };

export class MeshCaps {
  readonly #surroundings: Surroundings;
  readonly #counts = new Map<string, Count>();
  readonly #counting = new Map<string, Promise<Count>>();

  constructor(surroundings: Surroundings) {
    this.#surroundings = surroundings;
  }

  /** Why the mesh may not have one more. Undefined where it may; that one counts from now on. */
  async refusalOf(meshId: string, what: CountedThing): Promise<MeshError | undefined> {
    const { settings, nowMs } = this.#surroundings;
    const key: MeshCountKey = `max_${what}`;
    const { [key]: limit } = await settings.of(meshId);
    const known = this.#counts.get(keyOf(meshId, what));
    const age = known === undefined ? Number.POSITIVE_INFINITY : Math.abs(nowMs() - known.atMs);
    if (known !== undefined && age < (known.things * 2 < limit ? rememberedWithRoomMs : rememberedMs)) {
      if (take(known, limit)) return undefined;
      if (age < known.things * recountMsPerThing) return meshLimitReached(key, limit);
    }
    return take(await this.#countOnce(meshId, what, limit), limit) ? undefined : meshLimitReached(key, limit);
  }

  /** Requests that come while things are counted share the count: with one count each, all of them would find the same room. */
  #countOnce(meshId: string, what: CountedThing, limit: number): Promise<Count> {
    const key = keyOf(meshId, what);
    const counting =
      this.#counting.get(key) ?? this.#count(meshId, what, limit).finally(() => this.#counting.delete(key));
    this.#counting.set(key, counting);
    return counting;
  }

  async #count(meshId: string, what: CountedThing, limit: number): Promise<Count> {
    const atMs = this.#surroundings.nowMs();
    const count = { things: await countThings(this.#surroundings, meshId, what, limit, atMs), atMs };
    this.#counts.delete(keyOf(meshId, what));
    this.#counts.set(keyOf(meshId, what), count);
    if (this.#counts.size > rememberedMax) {
      const [oldest] = this.#counts.keys();
      if (oldest !== undefined) this.#counts.delete(oldest);
    }
    return count;
  }
}

function take(count: Count, limit: number): boolean {
  if (count.things >= limit) return false;
  count.things += 1;
  return true;
}

function countThings(
  { members, messages, spaces }: Stores,
  meshId: string,
  what: CountedThing,
  upTo: number,
  nowMs: number,
): Promise<number> {
  if (what === "topics" || what === "queues") return messages[what].count(meshId, upTo);
  if (what === "spaces" || what === "sessions") return spaces.count(meshId, what, upTo);
  return members.count(meshId, what, upTo, nowMs);
}

function keyOf(meshId: string, what: CountedThing): string {
  return `${meshId}/${what}`;
}

type Admitting = {
  readonly admitNew: (meshId: string, id: string) => Promise<void>;
  readonly caps: Pick<MeshCaps, "refusalOf">;
};

/** For something that is not there yet: spends a unit of the budget, then looks for room. */
export async function admitCreation(
  broker: Admitting,
  meshId: string,
  what: CountedThing,
  name: string,
): Promise<void> {
  await broker.admitNew(meshId, `${what}/${name}`);
  const refusal = await broker.caps.refusalOf(meshId, what);
  if (refusal !== undefined) throw refusal;
}

export function meshLimitReached(key: MeshCountKey, limit: number): MeshError {
  const what = key.slice("max_".length);
  const message =
    `The mesh may have ${limit} ${what} and has them; remove some, or let an owner raise ${key} with ` +
    `\`claudemesh mesh set ${key} <number>\`.`;
  return new MeshError("mesh_limit_reached", message, { setting: key, limit, count: limit });
}

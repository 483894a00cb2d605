// Answers that hold many documents, bounded by their size: a page ends early and says where it goes on, and what cannot
// be paged is refused with the bound.
import { MeshError } from "@claudemesh/protocol/errors";
import { encodeFabric } from "@claudemesh/protocol/spaces/fabric-value";
import type { ReadQuery } from "@claudemesh/protocol/spaces/wire-inputs";
import type { SpacePorts } from "@claudemesh/spaces/ports";
import type { SpaceRef } from "@claudemesh/spaces/ports/rows";
import { changesByPrefix } from "@claudemesh/spaces/services/changes";
import type { OpenedSession } from "@claudemesh/spaces/services/open-session";
import { type FoundEntity, listByPrefix, type Moment, readMany } from "@claudemesh/spaces/services/query";
import { ReadPace } from "@claudemesh/spaces/services/read-pace";

/** Read at once at most. */
const entitiesPerRead = 32;
/** Of documents in one page, after which it ends; and in one answer to ids, above which it is refused. */
const pageCharacters = 4_194_304;
const idsCharacters = 8_388_608;
/** Entities in a catch-up that travels with the answer to an open. */
const caughtUpMax = 1_000;

type Body = Record<string, unknown>;

export function entityBody({ id, seq, branch, document }: FoundEntity): Body {
  return document === undefined ? { id, seq, deleted: true } : { id, seq, branch, document: encodeFabric(document) };
}

class Items {
  readonly bodies: Body[] = [];
  characters = 0;

  /** How many of them were added before there were more than so many characters. */
  add(items: readonly FoundEntity[], charactersMax = Number.POSITIVE_INFINITY): number {
    for (const [index, item] of items.entries()) {
      if (this.characters > charactersMax) return index;
      const body = entityBody(item);
      this.bodies.push(body);
      this.characters += JSON.stringify(body).length;
    }
    return items.length;
  }
}

export function queryPage(
  ports: SpacePorts,
  space: SpaceRef,
  query: ReadQuery,
  moment: Moment,
  limit: number,
): Promise<Body> {
  return query.kind === "ids"
    ? readIds(ports, space, query.ids, moment)
    : listPrefix(ports, space, query, moment, limit);
}

async function readIds(ports: SpacePorts, space: SpaceRef, ids: readonly string[], moment: Moment): Promise<Body> {
  const found = new Items();
  let { atSeq } = moment;
  const pace = new ReadPace(entitiesPerRead, ports.nextTurn);
  for (let from = 0; from < ids.length; ) {
    const start = from;
    const { seq, items, read } = await pace.next((size, work) => {
      return readMany(ports, space, ids.slice(start, start + size), { ...moment, atSeq, work });
    });
    from += read;
    // All of it as of one seq, which the first read finds.
    atSeq = seq;
    found.add(items);
    if (found.characters > idsCharacters) {
      const message = "These entities are larger together than one answer; ask for fewer at once.";
      throw new MeshError("payload_too_large", message, { field: "ids", limit_bytes: idsCharacters });
    }
  }
  return { seq: atSeq, items: found.bodies, nextCursor: null };
}

async function listPrefix(
  ports: SpacePorts,
  space: SpaceRef,
  query: Extract<ReadQuery, { kind: "prefix" }>,
  moment: Moment,
  limit: number,
): Promise<Body> {
  const found = new Items();
  const { prefix } = query;
  let { cursor } = query;
  let { atSeq } = moment;
  const pace = new ReadPace(entitiesPerRead, ports.nextTurn);
  for (;;) {
    const page = await pace.next((size, work) => {
      const room = Math.min(size, limit - found.bodies.length);
      return listByPrefix(ports, space, { ...moment, atSeq, work, prefix, cursor, limit: room });
    });
    atSeq = page.seq;
    const added = found.add(page.items, pageCharacters);
    cursor = added < page.items.length ? page.items[added - 1]?.id : page.nextCursor;
    const isFull = found.bodies.length >= limit || found.characters > pageCharacters;
    if (cursor === undefined || isFull) return { seq: atSeq, items: found.bodies, nextCursor: cursor ?? null };
  }
}

/** What is newer on the default branch; undefined where that is too much for one answer, and has to be asked for. */
export async function changesSince(
  ports: SpacePorts,
  space: SpaceRef,
  fromSeq: number,
  { seq: toSeq, lastLocalSeq: caughtUpLocalSeq }: OpenedSession,
): Promise<Body | undefined> {
  const found = new Items();
  const upserts: Body[] = [];
  let cursor: string | undefined;
  const pace = new ReadPace(entitiesPerRead, ports.nextTurn);
  do {
    const page = await pace.next((limit, work) =>
      changesByPrefix(ports, space, { sinceSeq: fromSeq, atSeq: toSeq, work, prefix: "", cursor, limit }),
    );
    found.add(page.items);
    cursor = page.nextCursor;
    if (found.bodies.length > caughtUpMax || found.characters > pageCharacters) return undefined;
  } while (cursor !== undefined);
  for (const body of found.bodies) upserts.push({ branch: "", ...body });
  upserts.sort((a, b) => Number(a.seq) - Number(b.seq));
  return { fromSeq, toSeq, caughtUpLocalSeq, upserts, removes: [] };
}

// Reads what a broker pushes about a space, and what it answers about entities: unknown fields are ignored, values are
// decoded, and a wrong shape gives undefined.
import type { JsonValue } from "@claudemesh/protocol/json";
import { type EntityDocument, type EntityId, isEntityDocument } from "@claudemesh/protocol/spaces/entity";
import type { SyncPush } from "@claudemesh/protocol/wire/spaces-operations";
import { decodeOrNothing } from "./decoded.ts";

/** An entity as of its last write; without a document it is deleted. */
export type EntityRecord = {
  readonly id: EntityId;
  readonly seq: number;
  readonly document: EntityDocument | undefined;
};

/** A push with its documents decoded. `caughtUpLocalSeq` may name a commit whose verdict is still on its way. */
export type SyncFrame = Omit<SyncPush, "type" | "upserts"> & { readonly upserts: readonly EntityRecord[] };

type Fields = Readonly<Record<string, unknown>>;

export function readSyncFrame(push: object): SyncFrame | undefined {
  const {
    space,
    sessionId,
    branch = "",
    fromSeq,
    toSeq,
    caughtUpLocalSeq,
    upserts = [],
    removes = [],
  } = push as Fields;
  if (typeof space !== "string" || typeof sessionId !== "string" || typeof branch !== "string") return undefined;
  if (!isSeq(fromSeq) || !isSeq(toSeq) || !isSeq(caughtUpLocalSeq)) return undefined;
  if (!Array.isArray(upserts) || !Array.isArray(removes)) return undefined;
  const records = upserts.map(readEntityRecord);
  if (!records.every((record) => record !== undefined)) return undefined;
  const ids = removes.map((each: unknown) => (isFields(each) ? each.id : each));
  if (!ids.every((id) => typeof id === "string")) return undefined;
  return { space, sessionId, branch, fromSeq, toSeq, caughtUpLocalSeq, upserts: records, removes: ids };
}

export function readEntityRecord(item: unknown): EntityRecord | undefined {
  if (!isFields(item) || typeof item.id !== "string" || !isSeq(item.seq)) return undefined;
  const { id, seq } = item;
  if (item.deleted === true) return { id, seq, document: undefined };
  const decoded = item.document === undefined ? undefined : decodeOrNothing(item.document as JsonValue);
  if (decoded === undefined || !isEntityDocument(decoded.value)) return undefined;
  return { id, seq, document: decoded.value };
}

/** A page of entities as of one seq; undefined where it does not have the shape of the contract. */
export function readEntityPage(
  body: unknown,
):
  | { readonly seq: number; readonly items: readonly EntityRecord[]; readonly nextCursor: string | undefined }
  | undefined {
  if (!isFields(body) || !isSeq(body.seq) || !Array.isArray(body.items)) return undefined;
  const items = body.items.map(readEntityRecord);
  if (!items.every((item) => item !== undefined)) return undefined;
  const { seq, nextCursor } = body;
  return { seq, items, nextCursor: typeof nextCursor === "string" ? nextCursor : undefined };
}

export function isSeq(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

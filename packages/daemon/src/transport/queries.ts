// Query strings as schemas and values. Every parameter is known by name; what is not is refused, like an unknown field.
import { MeshError } from "@claudemesh/protocol/errors";
import { isUlid } from "@claudemesh/protocol/ids";
import { limits } from "@claudemesh/protocol/messages/limits";
import { isMemberName, isName, isPublicKey } from "@claudemesh/protocol/messages/names";
import { outboxStatuses } from "@claudemesh/protocol/messages/outbox-row";
import type { PageBefore, PageQuery } from "../ports.ts";

const text = { type: "string", maxLength: 256 } as const;

function query<const P>(properties: P) {
  return { type: "object", additionalProperties: false, properties } as const;
}

export const noQuery = query({});
const yesOrNo = { type: "string", enum: ["true", "false"] } as const;
/** From the beginning, behind `cursor`, before `before`, or with `newest` from the end. */
const pageParameters = { limit: text, cursor: text, before: text, newest: yesOrNo } as const;
export const inboxQuery = query({ since: text, topic: text, from: text, unread: yesOrNo, ...pageParameters });
export const searchQuery = { ...query({ q: text, limit: text, cursor: text }), required: ["q"] } as const;
export const eventsQuery = query({ last_event_id: text });
export const pageQuery = query({ limit: text, cursor: text });
export const topicsQuery = query({ ...pageQuery.properties, counts: yesOrNo });
export const onceQuery = query({
  ...pageQuery.properties,
  state: { type: "string", enum: ["running", "uncertain", "done", "released"] },
});
export const numberedPageQuery = query({ limit: text, after: text });
/** Nothing, or an object without fields. */
export const emptyBody = { type: ["object", "null"], additionalProperties: false, properties: {} } as const;
export const outboxQuery = query({
  status: { type: "string", enum: outboxStatuses },
  ...pageParameters,
});
export const outboxParams = {
  type: "object",
  additionalProperties: false,
  required: ["id"],
  properties: { id: { type: "string", minLength: 1, maxLength: limits.clientMessageIdCharacters } },
} as const;

/** What is left of a query once its schema has accepted it. */
type Accepted<Schema extends { readonly properties: object }> = {
  readonly [Name in keyof Schema["properties"]]?: string;
};
export type InboxQuery = Accepted<typeof inboxQuery>;
export type TopicsQuery = Accepted<typeof topicsQuery>;
export type OnceQuery = Accepted<typeof onceQuery>;
export type SearchQuery = Accepted<typeof searchQuery> & { readonly q: string };
export type OutboxQuery = Accepted<typeof outboxQuery>;

export function readPage(given: { readonly limit?: string; readonly cursor?: string }): PageQuery {
  return { after: readCursor(given.cursor), limit: readLimit(given.limit) };
}

type PageParameters = Parameters<typeof readPage>[0] & { readonly before?: string; readonly newest?: string };

/** Which page of a list is wanted, and from which side. */
export function readPageParameters(given: PageParameters): PageQuery | PageBefore {
  const isNewest = given.newest === "true";
  const starts = [given.cursor !== undefined, given.before !== undefined, isNewest];
  if (starts.filter(Boolean).length > 1) {
    const message = "cursor, before and newest exclude each other: a page begins at one of them.";
    throw new MeshError("invalid_request", message, { field: given.before === undefined ? "newest" : "before" });
  }
  if (given.before === undefined && !isNewest) return readPage(given);
  return { before: readCursor(given.before, "before", "prev_cursor"), limit: readLimit(given.limit) };
}

/** A page of something that the broker keeps: what its cursors look like is the broker's business. */
export function readBrokerPage(given: { readonly limit?: string; readonly cursor?: string }) {
  return { limit: readLimit(given.limit), ...(given.cursor === undefined ? {} : { after: given.cursor }) };
}

export function readTopicsQuery({ counts, ...page }: TopicsQuery) {
  return { ...readBrokerPage(page), ...(counts === undefined ? {} : { counts: counts === "true" }) };
}

/** The same where the broker counts, and says `next_after`. */
export function readNumberedPage(given: { readonly limit?: string; readonly after?: string }) {
  const limit = readLimit(given.limit);
  if (given.after === undefined) return { limit };
  if (/^[0-9]{1,15}$/.test(given.after)) return { limit, after: Number(given.after) };
  throw new MeshError("invalid_request", "after is the next_after of an earlier page.", { field: "after" });
}

export function readLimit(given: string | undefined): number {
  if (given === undefined) return limits.pageItemsDefault;
  const limit = /^[0-9]{1,4}$/.test(given) ? Number(given) : 0;
  if (limit >= 1 && limit <= limits.pageItems) return limit;
  throw new MeshError("invalid_request", `limit is a whole number from 1 to ${limits.pageItems}.`, { field: "limit" });
}

function readCursor(given: string | undefined, field = "cursor", answered = "next_cursor"): string | undefined {
  if (given === undefined || isUlid(given)) return given;
  throw new MeshError("invalid_request", `${field} is the ${answered} of an earlier page.`, { field });
}

const isoTime =
  /^[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?(?:Z|[+-][0-9]{2}:[0-9]{2}))?$/;

/** Milliseconds since the epoch, or an ISO 8601 date or time with its zone. */
export function readSince(given: string | undefined): number | undefined {
  if (given === undefined) return undefined;
  if (/^[0-9]{1,15}$/.test(given)) return Math.min(Number(given), 2 ** 48 - 1);
  const timeMs = isoTime.test(given) ? Date.parse(given) : Number.NaN;
  if (!Number.isNaN(timeMs)) return Math.max(0, timeMs);
  const message = "since is milliseconds since the epoch, or an ISO 8601 time with its zone.";
  throw new MeshError("invalid_request", message, { field: "since" });
}

export function readTopic(given: string | undefined): string | undefined {
  return given === undefined ? undefined : readTopicName(given);
}

/** A topic as an address or by its bare name. */
export function readTopicName(given: string): string {
  const name = given.replace(/^(?:#|topic:)/, "");
  if (isName(name)) return name;
  throw new MeshError("invalid_name", undefined, { field: "topic" });
}

export type SenderFilter = { readonly pubkey: string } | { readonly name: string } | "self";

/** A member by key or by name, written as an address or bare. */
export function readSender(given: string | undefined): SenderFilter | undefined {
  if (given === undefined) return undefined;
  if (given === "@self") return "self";
  const pubkey = given.replace(/^dm:/, "");
  if (isPublicKey(pubkey)) return { pubkey };
  const name = given.replace(/^@/, "");
  if (isMemberName(name)) return { name };
  throw new MeshError("invalid_address", "from is a member: @name, or dm:<public key hex>.", { field: "from" });
}

// Routes for what arrived: pages from either end, a search, and what a reader has not been given yet.
import { type InboxNextRequest, inboxNextRequestSchema } from "@claudemesh/protocol/messages/local-requests";
import { type InboxRecord, showInboxItem } from "../core/inbox-message.ts";
import type { InboxFilter, InboxReaders, InboxStore, Page } from "../ports.ts";
import type { MemberDirectory } from "../services/member-directory.ts";
import type { NameOf, PeerPins } from "../services/peer-pins.ts";
import { showNewest, showPage } from "./pages.ts";
import {
  type InboxQuery,
  inboxQuery,
  noQuery,
  readLimit,
  readPage,
  readPageParameters,
  readSender,
  readSince,
  readTopic,
  type SearchQuery,
  searchQuery,
} from "./queries.ts";
import { type Answer, ok, type Route } from "./route.ts";

export type InboxApi = {
  readonly mesh: { readonly id: string; readonly name: string };
  readonly ownPubkey: string;
  readonly inbox: Pick<InboxStore, "list" | "listBefore" | "search">;
  readonly readers: InboxReaders;
  readonly nowMs: () => number;
  readonly directory: Pick<MemberDirectory, "keysOf">;
  readonly pins: Pick<PeerPins, "sendersCalled">;
  readonly nameOf: NameOf;
};

export const inboxRoutes: readonly Route<InboxApi>[] = [
  {
    method: "GET",
    url: "/v1/inbox",
    summary: "What arrived, oldest first; from the beginning, behind a cursor, before one, or the newest page",
    schema: { querystring: inboxQuery },
    handle: (api, { query }) => listInbox(api, query as InboxQuery),
  },
  {
    method: "GET",
    url: "/v1/inbox/search",
    summary: "Messages whose text has all these words, oldest first; a word that ends in * stands for its beginning",
    schema: { querystring: searchQuery },
    handle: (api, { query }) => {
      const given = query as SearchQuery;
      return showInbox(api, api.inbox.search(given.q, readPage(given)));
    },
  },
  {
    method: "POST",
    url: "/v1/inbox/next",
    summary: "Unread messages that this reader has not acknowledged; its position is kept",
    schema: { querystring: noQuery, body: inboxNextRequestSchema },
    handle: (api, { body }) => giveNext(api, body as InboxNextRequest),
  },
];

function listInbox(api: InboxApi, query: InboxQuery): Answer {
  const filter: InboxFilter = {
    since: readSince(query.since),
    topic: readTopic(query.topic),
    senders: sendersOf(api, query.from),
    ...(query.unread === "true" && { unread: true }),
  };
  const page = readPageParameters(query);
  if ("after" in page) return showInbox(api, api.inbox.list(filter, page));
  return showNewest(api.inbox.listBefore(filter, page), show(api));
}

const show = (api: InboxApi) => (record: InboxRecord) => showInboxItem(record, api.mesh.name, api.nameOf);

function showInbox(api: InboxApi, page: Page<InboxRecord>): Answer {
  return showPage(page, show(api));
}

async function giveNext(api: InboxApi, request: InboxNextRequest): Promise<Answer> {
  const { reader, acknowledge, limit } = request;
  const ask = { reader, acknowledge, limit: limit ?? readLimit(undefined) };
  const page = await api.readers.next(ask, api.nowMs());
  const items = page.items.map((record) => ({
    ...show(api)(record),
    ...(record.id <= page.offeredBefore && { again: true }),
  }));
  return ok({
    reader,
    items,
    acknowledge: page.items.at(-1)?.id ?? null,
    position: page.position,
    waiting: page.waiting,
    older: page.older,
    prev_cursor: page.older === 0 ? null : page.startsAt,
  });
}

/** A name stands for the key that is pinned for it, else for each member that has it; one that no member has, for none. */
function sendersOf(api: InboxApi, from: string | undefined): InboxFilter["senders"] {
  const sender = readSender(from);
  if (sender === undefined) return "any";
  if (sender === "self") return [api.ownPubkey];
  return "pubkey" in sender ? [sender.pubkey] : api.pins.sendersCalled(sender.name, api.directory);
}

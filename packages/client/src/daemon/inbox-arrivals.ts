// Waiting for messages. Events say that a message arrived; the messages themselves are read from the inbox, which
// filters them and keeps the cursor, so that none is missed between two reads.
import { type ErrorBody, isErrorBody } from "@claudemesh/protocol/errors";
import type { DaemonEvent, InboxItem, InboxQuery, Page } from "./daemon-bodies.ts";
import type { EventsOptions } from "./daemon-events.ts";
import { DaemonRefused } from "./daemon-failures.ts";

type Answer<Body> = { readonly status: number; readonly body: Body | ErrorBody };

export type ArrivalPorts = {
  readonly events: (options: EventsOptions) => AsyncIterable<DaemonEvent>;
  readonly inbox: (query: InboxQuery) => Promise<Answer<Page<InboxItem>>>;
};

export type FollowOptions = { readonly signal?: AbortSignal };
export type WaitOptions = FollowOptions & { readonly timeoutMs: number };

/** A longer delay would overflow Node's timers and fire at once. */
const timerMsMax = 2 ** 31 - 1;

/** Each message once, in the order of arrival, from the query's cursor or time on; without either, from now on. */
export async function* followInbox(
  ports: ArrivalPorts,
  query: InboxQuery,
  options: FollowOptions = {},
): AsyncGenerator<InboxItem> {
  for await (const page of readArrivals(ports, query, options)) yield* page.items;
}

/**
 * The first messages after the query's cursor or time, or after this call; none when the time runs out. `next_cursor`
 * is where the next wait goes on without a gap. A refusal is returned as an answer.
 */
export async function waitForInbox(
  ports: ArrivalPorts,
  query: InboxQuery,
  options: WaitOptions,
): Promise<Answer<Page<InboxItem>>> {
  const ended = new AbortController();
  const timer = setTimeout(() => ended.abort(), Math.min(options.timeoutMs, timerMsMax));
  const signal = options.signal === undefined ? ended.signal : AbortSignal.any([ended.signal, options.signal]);
  let page: Page<InboxItem> = { items: [], next_cursor: query.cursor ?? null };
  try {
    for await (page of readArrivals(ports, query, { signal })) if (page.items.length > 0) break;
    return { status: 200, body: page };
  } catch (error) {
    if (error instanceof DaemonRefused) return { status: error.status, body: error.body };
    throw error;
  } finally {
    clearTimeout(timer);
    ended.abort();
  }
}

/** Yields pages without messages too, for their `next_cursor`. */
async function* readArrivals(
  ports: ArrivalPorts,
  query: InboxQuery,
  options: FollowOptions,
): AsyncGenerator<Page<InboxItem>> {
  let cursor = query.cursor;
  let isFirst = true;
  for await (const event of ports.events(options)) {
    const position = event.id.split(".", 1)[0] ?? "";
    if (isFirst) {
      isFirst = false;
      if (query.since === undefined) cursor ??= position;
    } else if (event.kind !== "message" || (cursor !== undefined && position <= cursor)) continue;
    let page: Page<InboxItem>;
    do {
      page = await readPage(ports, { ...query, ...(cursor === undefined ? {} : { cursor }) });
      cursor = page.items.at(-1)?.id ?? cursor;
      // Everything that had arrived before the event has been read, including what the query excludes.
      if (page.next_cursor === null && (cursor === undefined || cursor < position)) cursor = position;
      yield { items: page.items, next_cursor: cursor ?? null };
    } while (page.next_cursor !== null);
  }
}

async function readPage(ports: ArrivalPorts, query: InboxQuery): Promise<Page<InboxItem>> {
  const { status, body } = await ports.inbox(query);
  if (isErrorBody(body)) throw new DaemonRefused(status, body);
  return body;
}

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openSqlite } from "@claudemesh/storage/sqlite";
import { migrateSqlite } from "@claudemesh/storage/sqlite-migrations";
import fc from "fast-check";
import { describe, expect, it, onTestFinished } from "vitest";
import type { InboxArrival } from "../../ports.ts";
import { ManualClock } from "../../testing/manual-clock.ts";
import { noFailpoints, openTestStores, recordingLog } from "../../testing/test-stores.ts";
import { inboxMigrations, openInboxDatabase } from "./open-databases.ts";
import { openStores } from "./open-stores.ts";

const utf8 = (text: string) => new TextEncoder().encode(text);
const everything = { since: undefined, topic: undefined, senders: "any" } as const;
const firstPage = { after: undefined, limit: 100 };

function arrival(historyId: number, body: string | Uint8Array, given: Partial<InboxArrival> = {}): InboxArrival {
  return {
    clientMessageId: `c-${historyId}`,
    brokerMessageId: `b-${historyId}`,
    historyId,
    topic: "general",
    senderPubkey: "ab".repeat(32),
    senderName: undefined,
    priority: "next",
    meta: "",
    replyToId: undefined,
    acceptedAt: 1,
    sealed: false,
    fromAgent: undefined,
    toAgent: undefined,
    unreadable: undefined,
    restored: false,
    body: typeof body === "string" ? utf8(body) : body,
    ...given,
  };
}

async function setUp() {
  const clock = new ManualClock();
  const { inbox, inboxDb } = await openTestStores(clock);
  const arrive = (message: InboxArrival) => inbox.insert(message, clock.nowMs());
  const found = (text: string, page = firstPage) => inbox.search(text, page).items.map(({ history_id }) => history_id);
  const listed = () => inbox.list(everything, firstPage).items.map(({ history_id }) => history_id);
  return { clock, inbox, inboxDb, arrive, found, listed };
}

describe("a search", () => {
  it("finds the messages that have all the words, oldest first, whatever their case and accents", async () => {
    const { arrive, found } = await setUp();
    await arrive(arrival(1, "The build is GREEN"));
    await arrive(arrival(2, "the café is green"));
    await arrive(arrival(3, "the build-server is down, see https://ci.example/42"));
    expect(found("green")).toEqual([1, 2]);
    expect(found("the build")).toEqual([1, 3]);
    expect(found("build green")).toEqual([1]);
    expect(found("cafe")).toEqual([2]);
    expect(found("build-server")).toEqual([3]);
    expect(found("ci.example/42")).toEqual([3]);
    expect(found("serv")).toEqual([]);
    expect(found("serv*")).toEqual([3]);
    expect(found("nothing")).toEqual([]);
  });

  it("finds no ciphertext and no bytes that are no text", async () => {
    const { arrive, found } = await setUp();
    await arrive(arrival(1, "secret", { unreadable: "relabelled" }));
    await arrive(arrival(2, Uint8Array.of(...utf8("secret "), 0xff)));
    await arrive(arrival(3, "secret"));
    expect(found("secret")).toEqual([3]);
  });

  it("goes page by page without a gap or a repeat", async () => {
    const { inbox, arrive } = await setUp();
    for (let id = 1; id <= 7; id++) await arrive(arrival(id, id % 3 === 0 ? "other" : `word ${id}`));
    const seen: number[] = [];
    let after: string | undefined;
    do {
      const page = inbox.search("word", { after, limit: 2 });
      seen.push(...page.items.map(({ history_id }) => history_id));
      after = page.nextCursor;
    } while (after !== undefined);
    expect(seen).toEqual([1, 2, 4, 5, 7]);
  });

  it("takes any text without an error, and finds a message by each of its plain words", async () => {
    const { arrive, found } = await setUp();
    await arrive(arrival(1, 'AND OR NOT NEAR "quoted" body:x ^ ( ) { } - + *'));
    for (const word of ["AND", "OR", "NOT", "NEAR", '"quoted"', "body:x", "NEAR("]) expect(found(word)).toEqual([1]);
    expect(found("")).toEqual([]);
    expect(found(' * "" ( \0 ')).toEqual([]);
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 40 }), fc.string({ maxLength: 40 }), (odd, ascii) => {
        expect(Array.isArray(found(odd)) && Array.isArray(found(ascii))).toBe(true);
      }),
      { numRuns: 200 },
    );
  });
});

describe("retention", () => {
  it("removes by age, read or not, and its words with it", async () => {
    const { clock, inbox, inboxDb, arrive, found, listed } = await setUp();
    await arrive(arrival(1, "old and unread"));
    await arrive(arrival(2, "old and read"));
    inboxDb.sql("UPDATE inbox SET read_at = 5 WHERE history_id = 2").run();
    clock.advance(1_000);
    const moment = clock.nowMs();
    await arrive(arrival(3, "old but not that old"));
    expect(await inbox.removeReceivedBefore(moment, clock.nowMs(), 1)).toBe(1);
    expect(listed()).toEqual([2, 3]);
    expect(await inbox.removeReceivedBefore(moment, clock.nowMs(), 100)).toBe(1);
    expect(listed()).toEqual([3]);
    expect(found("old")).toEqual([3]);
    expect(inboxDb.sql("SELECT client_message_id, read_at FROM inbox_tombstone").all()).toEqual([
      { client_message_id: "c-1", read_at: null },
      { client_message_id: "c-2", read_at: 5 },
    ]);
  });

  it("keeps the id known, so that neither a redelivery nor a replay brings the message back", async () => {
    const { clock, inbox, arrive, listed } = await setUp();
    await arrive(arrival(1, "gone"));
    clock.advance(1_000);
    await inbox.removeReceivedBefore(clock.nowMs(), clock.nowMs(), 100);
    expect(await arrive(arrival(1, "gone"))).toBe("known");
    expect(await arrive(arrival(1, "gone", { restored: true }))).toBe("known");
    expect(listed()).toEqual([]);
  });

  it("leaves ids growing when it has removed everything and the clock was set back", async () => {
    const folder = temporaryFolder();
    const paths = { outboxDb: join(folder, "outbox.db"), inboxDb: join(folder, "inbox.db") };
    const clock = new ManualClock();
    const before = await openStores(paths, clock, noFailpoints, recordingLog());
    await before.inbox.insert(arrival(1, "a"), clock.nowMs());
    const lastId = before.inbox.lastId();
    clock.advance(1);
    await before.inbox.removeReceivedBefore(clock.nowMs(), clock.nowMs(), 100);
    expect(before.inbox.lastId()).toBe(lastId);
    before.close();
    const yesterday = new ManualClock(clock.nowMs() - 86_400_000);
    const after = await openStores(paths, yesterday, noFailpoints, recordingLog());
    await after.inbox.insert(arrival(2, "b"), yesterday.nowMs());
    const { items } = after.inbox.news(lastId ?? "");
    after.close();
    expect(items.map(({ history_id }) => history_id)).toEqual([2]);
  });
});

describe("news", () => {
  it("are live arrivals in their order, and pass over what was restored", async () => {
    const { inbox, arrive } = await setUp();
    for (let id = 1; id <= 500; id++) await arrive(arrival(id, "x", { restored: id > 10 && id < 490 }));
    const seen: number[] = [];
    let after = "";
    for (let more = true; more; ) {
      const news = inbox.news(after);
      seen.push(...news.items.map(({ history_id }) => history_id));
      ({ upTo: after, more } = news);
    }
    expect(seen).toEqual([...range(1, 10), ...range(490, 500)]);
    expect(inbox.news(after)).toEqual({ items: [], upTo: after, more: false });
  });

  it("come in steps of bounded size", async () => {
    const { inbox, arrive } = await setUp();
    for (let id = 1; id <= 10; id++) await arrive(arrival(id, "x".repeat(30_000)));
    const { items, more } = inbox.news("");
    expect([items.length, more]).toEqual([2, true]);
  });

  it("are a message that the rebuild brought first and the broker then delivered, once", async () => {
    const { inbox, inboxDb, arrive, found, listed } = await setUp();
    await arrive(arrival(1, "restored text", { restored: true }));
    inboxDb.sql("UPDATE inbox SET read_at = 7").run();
    await arrive(arrival(2, "live"));
    const upTo = inbox.lastId() ?? "";
    expect(await arrive(arrival(1, "restored text"))).toBe("new");
    expect(await arrive(arrival(1, "restored text"))).toBe("known");
    expect(await arrive(arrival(1, "restored text", { restored: true }))).toBe("known");
    expect(inbox.news(upTo).items).toMatchObject([{ history_id: 1, read_at: 7 }]);
    expect(listed()).toEqual([2, 1]);
    expect(found("restored")).toEqual([1]);
  });
});

describe("an inbox of the first version", () => {
  it("keeps every message and mark when it is upgraded, and all its text can be searched", async () => {
    const path = join(temporaryFolder(), "inbox.db");
    const [first] = inboxMigrations();
    if (first === undefined) throw new Error("there is no first migration");
    const old = openSqlite({ path });
    await migrateSqlite(old, [first]);
    const insert = old.sql(
      `INSERT INTO inbox (id, client_message_id, broker_message_id, history_id, topic, sender_pubkey, sender_name,
         priority, meta, accepted_at, received_at, read_at, unreadable, restored, body)
       VALUES (?, ?, 'b', ?, 'general', 'ab', 'bob', 'now', '{"a":1}', 1, 2, ?, ?, ?, ?)`,
    );
    old.transaction(() => {
      // Not in the order of their ids.
      for (const n of range(1, 600).reverse()) {
        const body = n === 5 ? Uint8Array.of(0xff, ...utf8(" word")) : utf8(`word number${n}`);
        insert.run(ulid(n), `c-${n}`, n, n === 1 ? 9 : null, n === 6 ? 1 : 0, n === 7 ? 1 : 0, body);
      }
    });
    old.sql("INSERT INTO inbox_state (key, value) VALUES ('rebuild_after_history_id', '42')").run();
    const columns = `id, client_message_id, broker_message_id, history_id, topic, sender_pubkey, sender_name, priority,
      meta, reply_to_id, accepted_at, received_at, read_at, unreadable, restored, body`;
    const before = old.sql(`SELECT ${columns} FROM inbox ORDER BY id`).all();
    old.close();

    const { db, schema } = await openInboxDatabase(path, "now", recordingLog());
    onTestFinished(() => void db.close());
    expect(schema).toBe(inboxMigrations().length);
    expect(db.sql(`SELECT ${columns} FROM inbox ORDER BY id`).all()).toEqual(before);
    expect(db.sql(`SELECT ${columns} FROM inbox ORDER BY seq`).all()).toEqual(before);
    expect(db.sql("SELECT key, value FROM inbox_state").all()).toEqual([
      { key: "rebuild_after_history_id", value: "42" },
    ]);
    const matches = db.sql<{ n: number }>("SELECT count(*) AS n FROM inbox_search WHERE inbox_search MATCH ?");
    expect(matches.get('"word"')).toEqual({ n: 598 });
    expect(matches.get('"number600"')).toEqual({ n: 1 });
  });

  it("knows what retention had removed when it is upgraded from the second", async () => {
    const path = join(temporaryFolder(), "inbox.db");
    const old = openSqlite({ path });
    await migrateSqlite(old, inboxMigrations().slice(0, 2));
    old.sql("INSERT INTO inbox_tombstone VALUES ('c-1', 'i-1', 'b-1', 1, 2, 3, 4)").run();
    old.close();
    const { db } = await openInboxDatabase(path, "now", recordingLog());
    onTestFinished(() => void db.close());
    expect(db.sql("SELECT * FROM inbox_tombstone").all()).toEqual([
      {
        ...{ client_message_id: "c-1", broker_message_id: "b-1", id: "i-1", history_id: 1 },
        ...{ received_at: 2, read_at: 3, removed_at: 4 },
      },
    ]);
  });

  it("keeps every index that it had", async () => {
    const upgraded = openSqlite({ path: ":memory:" });
    await migrateSqlite(upgraded, inboxMigrations());
    const tables = upgraded.sql<{ name: string }>("SELECT name FROM pragma_table_list WHERE type <> 'shadow'").all();
    expect(tables.map(({ name }) => name)).not.toContain("inbox_numbered");
    const source = readFileSync(new URL("./migrations/inbox/0001-inbox.sql", import.meta.url), "utf8");
    for (const index of source.matchAll(/CREATE INDEX (\w+)/g)) {
      expect(upgraded.sql("SELECT 1 FROM sqlite_schema WHERE name = ?").get(index[1] ?? "")).toBeDefined();
    }
    upgraded.close();
  });
});

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "cm-inbox-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, index) => from + index);
}

function ulid(n: number): string {
  return `01J${String(n).padStart(23, "0")}`;
}

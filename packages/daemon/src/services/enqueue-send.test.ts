import { nodeSha256 } from "@claudemesh/client/internal/node-sha256";
import { generateMemberKeys, memberKeysFromSeed } from "@claudemesh/client/keys";
import { loadSealer } from "@claudemesh/client/seal";
import { MeshError } from "@claudemesh/protocol/errors";
import { fingerprint } from "@claudemesh/protocol/messages/fingerprint";
import { StorageError } from "@claudemesh/storage/errors";
import { describe, expect, it } from "vitest";
import type { OutboxRecord } from "../core/outbox-row.ts";
import { ManualClock } from "../testing/manual-clock.ts";
import { ScriptedLink, settle } from "../testing/scripted-link.ts";
import { failpointsOf, noFailpoints, openTestStores, recordingLog } from "../testing/test-stores.ts";
import { DestinationDirectory } from "./destination-directory.ts";
import { type EnqueuePorts, enqueueSend } from "./enqueue-send.ts";
import { createMemberDirectory } from "./member-directory.ts";

const utf8 = new TextEncoder();

async function setUp(given: Partial<EnqueuePorts> = {}, failpoints = noFailpoints) {
  const clock = new ManualClock();
  const stores = await openTestStores(clock, failpoints);
  const keys = memberKeysFromSeed(new Uint8Array(32).fill(7));
  const link = new ScriptedLink();
  const directory = createMemberDirectory({
    store: stores.members,
    link,
    log: recordingLog(),
    requestTimeoutMs: 1_000,
  });
  let minted = 0;
  let wakes = 0;
  const ports: EnqueuePorts = {
    ownPubkey: keys.ed25519.public_key,
    directory,
    pins: { refusal: () => undefined, use: () => undefined },
    link,
    outbox: stores.outbox,
    gauge: { admit: () => undefined, makeRoom: async () => false },
    destinations: new DestinationDirectory({ link, clock }),
    membership: { require: () => undefined },
    way: () => ({}),
    sealer: await loadSealer(keys),
    sha256: nodeSha256,
    nowMs: clock.nowMs,
    nextOutboxId: stores.nextOutboxId,
    nextClientMessageId: () => `minted-${++minted}`,
    inlineBytes: () => 65_536,
    drain: { takeRoom: () => false, returnRoom: () => undefined, begin: () => undefined, wake: () => wakes++ },
    expiry: { stored: () => undefined },
    ...given,
  };
  const row = (id: string) => stores.outbox.inspect(id)?.row as OutboxRecord;
  const payload = (id: string) =>
    stores.outboxDb.sql<{ payload: Uint8Array }>("SELECT payload FROM outbox WHERE client_message_id = ?").get(id)
      ?.payload;
  return { clock, stores, keys, link, ports, row, payload, wakes: () => wakes };
}

function forbidden(): never {
  throw new Error("this must not be called here");
}

function refuse(code: "insufficient_storage" | "invalid_address"): () => never {
  return () => {
    throw new MeshError(code);
  };
}

const emptyDirectory = { keysOf: () => [], nameOf: () => undefined, isAnothers: () => false, refresh: forbidden };

describe("an accepted send", () => {
  it("to a topic is stored as it will travel, with one fingerprint for both layers", async () => {
    const { ports, row, payload } = await setUp();
    await enqueueSend(
      ports,
      { to: "topic:general", message: "héllo", meta: { b: 1, a: 2 }, client_message_id: "t" },
      undefined,
    );
    const stored = row("t");
    const envelope = {
      version: "1",
      destination: { kind: "topic", ref: "general" },
      replyToId: undefined,
      priority: "next",
      canonicalMeta: '{"a":2,"b":1}',
      body: utf8.encode("héllo"),
    } as const;
    expect(stored).toMatchObject({ to_address: "topic:general", envelope_version: "1", meta: '{"a":2,"b":1}' });
    expect(Buffer.from(stored.request_fingerprint)).toEqual(Buffer.from(fingerprint(nodeSha256, envelope)));
    expect(stored.wire_fingerprint).toEqual(stored.request_fingerprint);
    expect(payload("t")).toEqual(new Uint8Array(utf8.encode("héllo")));
  });

  it("to a member is sealed once, and its wire fingerprint covers the sealed bytes", async () => {
    const { ports, row, payload, keys } = await setUp();
    const bob = generateMemberKeys();
    const to = `dm:${bob.ed25519.public_key}`;
    await enqueueSend(ports, { to, message: "secret", client_message_id: "d" }, undefined);
    const stored = row("d");
    const sealed = payload("d") ?? new Uint8Array();
    expect(stored).toMatchObject({
      envelope_version: "3",
      destination_kind: "dm",
      destination_ref: bob.ed25519.public_key,
    });
    expect(Buffer.from(sealed).includes("secret")).toBe(false);
    const plain = {
      version: "1",
      destination: { kind: "dm", ref: bob.ed25519.public_key },
      replyToId: undefined,
      priority: "next",
      canonicalMeta: "",
      body: utf8.encode("secret"),
    } as const;
    const wire = { ...plain, version: "3", body: sealed } as const;
    expect(Buffer.from(stored.request_fingerprint)).toEqual(Buffer.from(fingerprint(nodeSha256, plain)));
    expect(Buffer.from(stored.wire_fingerprint)).toEqual(Buffer.from(fingerprint(nodeSha256, wire)));
    const opened = (await loadSealer(bob)).open({ peer: keys.ed25519.public_key, sealed });
    expect(opened).toMatchObject({ clientMessageId: "d", recipient: bob.ed25519.public_key, priority: "next" });
    expect(Buffer.from(opened?.body ?? []).toString()).toBe("secret");
  });

  it("to @self goes to this member's own key", async () => {
    const { ports, row, keys } = await setUp();
    await enqueueSend(ports, { to: "@self", message: "note", client_message_id: "s" }, undefined);
    expect(row("s")).toMatchObject({ to_address: "@self", destination_ref: keys.ed25519.public_key });
  });

  it("wakes the drain, and a duplicate does not", async () => {
    const { ports, wakes } = await setUp();
    const request = { to: "#general", message: "m", client_message_id: "once" };
    await enqueueSend(ports, request, undefined);
    await enqueueSend(ports, request, undefined);
    expect(wakes()).toBe(1);
  });

  it("shares its id with no other: ids grow with every accept", async () => {
    const { ports, stores } = await setUp();
    const sends = Array.from({ length: 50 }, () => enqueueSend(ports, { to: "#general", message: "m" }, undefined));
    const ids = (await Promise.all(sends)).map(({ body }) => body.outbox_id as string);
    expect(ids).toEqual([...ids].sort());
    expect(stores.outbox.list(undefined, { after: undefined, limit: 100 }).items.map(({ id }) => id)).toEqual(ids);
  });
});

describe("a retry", () => {
  it("reads one row and writes none", async () => {
    const { ports, stores } = await setUp();
    const request = { to: "@self", message: "m", client_message_id: "r" };
    await enqueueSend(ports, request, undefined);
    const totalChanges = () => stores.outboxDb.sql("SELECT total_changes() AS n").get();
    const before = totalChanges();
    const guarded: EnqueuePorts = { ...ports, outbox: { ...ports.outbox, find: forbidden } };
    expect((await enqueueSend(guarded, request, undefined)).body).toMatchObject({ duplicate: true });
    expect(totalChanges()).toEqual(before);
  });

  it.each<[string, Partial<EnqueuePorts>]>([
    ["the disk is full", { gauge: { admit: refuse("insufficient_storage"), makeRoom: async () => false } }],
    ["it is too large now", { inlineBytes: () => 0 }],
    ["its recipient cannot be sealed for", { sealer: { seal: refuse("invalid_address") } }],
    ["no member has its name now", { directory: emptyDirectory, link: { whenOnline: forbidden } }],
  ])("is answered by one read although %s", async (_, hindrance) => {
    const { ports, link } = await setUp();
    link.goOnline();
    const refreshed = ports.directory.refresh();
    const bob = generateMemberKeys().ed25519.public_key;
    (await link.requested("members.list")).answer(200, { items: [{ pubkey: bob, name: "bob" }] });
    await refreshed;
    const request = { to: "@bob", message: "m", client_message_id: "r" };
    const first = await enqueueSend(ports, request, undefined);
    const outbox = { ...ports.outbox, insert: forbidden };
    const hindered: EnqueuePorts = { ...ports, ...hindrance, outbox };
    const retry = await enqueueSend(hindered, request, undefined);
    expect(retry).toEqual({ status: 202, body: { ...first.body, duplicate: true } });
    const other = await enqueueSend(hindered, { ...request, message: "other" }, undefined);
    expect(other).toMatchObject({ status: 409, body: { conflict: "outbox_pending_fingerprint_mismatch" } });
  });

  it("of a pruned send is answered by its tombstone as the row would have", async () => {
    const { ports, stores, clock, row } = await setUp();
    const request = { to: "#general", message: "m", client_message_id: "old" };
    await enqueueSend(ports, request, undefined);
    const { rows } = await stores.outbox.claimDue({ nowMs: clock.nowMs(), expiredAtOrBefore: 0, rows: 1, bytes: 1 });
    const acceptance = { brokerMessageId: "b", historyId: 4, historyAvailable: true };
    await stores.outbox.endTry(rows[0]?.id ?? "", 0, { next: "done", acceptance }, clock.nowMs());
    const before = await enqueueSend(ports, request, undefined);
    expect(before).toMatchObject({ status: 200, body: { status: "done", broker_message_id: "b", history_id: 4 } });
    clock.advance(10_000);
    expect(await stores.outbox.prune(clock.nowMs(), clock.nowMs(), 10)).toBe(1);
    expect(stores.outboxDb.sql("SELECT id FROM outbox").all()).toEqual([]);
    expect(await enqueueSend(ports, request, undefined)).toEqual(before);
    const other = await enqueueSend(ports, { ...request, message: "other" }, undefined);
    expect(other).toMatchObject({ status: 409, body: { conflict: "outbox_done_fingerprint_mismatch" } });
    expect(row("old")).toMatchObject({ status: "done", history_id: 4 });
  });
});

describe("a refusal consumes nothing", () => {
  it("of what is too large on the wire, up to the last byte", async () => {
    const { ports, stores } = await setUp({ inlineBytes: () => 1_024 });
    const send = (to: string, size: number) => enqueueSend(ports, { to, message: "x".repeat(size) }, undefined);
    expect((await send("#general", 1_024)).status).toBe(202);
    await expect(send("#general", 1_025)).rejects.toMatchObject({
      code: "payload_too_large",
      details: { limit_bytes: 1_024 },
    });
    // A power of two is a step of the padding: what fits into it with everything beside the body is taken.
    const beside = 40 + 4 + 4 + `${"k".repeat(64)} ${"k".repeat(64)} dm-1  next   `.length;
    const sendSealed = (client_message_id: string, size: number) =>
      enqueueSend(ports, { to: "@self", message: "x".repeat(size), client_message_id }, undefined);
    const refusal = { code: "payload_too_large", details: { wire_bytes: 1_148, limit_bytes: 1_024 } };
    await expect(sendSealed("dm-1", 1_024 - beside + 1)).rejects.toMatchObject(refusal);
    expect((await sendSealed("dm-1", 1_024 - beside)).status).toBe(202);
    expect(stores.outbox.counts().pending).toBe(2);
  });

  it("of a name that no member has, after the broker was asked", async () => {
    const { ports, stores, link } = await setUp();
    link.goOnline();
    const refused = enqueueSend(ports, { to: "@ghost", message: "m", client_message_id: "n" }, undefined);
    (await link.requested("members.list")).answer(200, { items: [], next_cursor: null });
    await expect(refused).rejects.toMatchObject({ code: "destination_not_found" });
    expect(stores.outbox.find("n")).toBeUndefined();
  });

  it.each(["outbox.before_commit=error", "outbox.after_commit=error"])(
    "with %s it is not answered 202",
    async (text) => {
      const { ports, wakes } = await setUp({}, failpointsOf(text));
      const refused = enqueueSend(ports, { to: "#general", message: "m", client_message_id: "f" }, undefined);
      await expect(refused).rejects.toBeInstanceOf(StorageError);
      expect(wakes()).toBe(0);
    },
  );
});

describe("a name", () => {
  const listOf = (...members: [string, string][]) => ({
    items: members.map(([name, pubkey]) => ({ name, pubkey, role: "member", joined_at: 1 })),
    next_cursor: null,
  });

  it("that joined since the last list is found by asking, once for all callers that wait", async () => {
    const { ports, link, row } = await setUp();
    const bob = generateMemberKeys().ed25519.public_key;
    link.goOnline();
    const sends = [1, 2, 3].map((n) =>
      enqueueSend(ports, { to: "@bob", message: "m", client_message_id: `w${n}` }, undefined),
    );
    (await link.requested("members.list")).answer(200, listOf(["bob", bob]));
    // A caller that came while that list was on its way gets one that was asked for later.
    (await link.requested("members.list")).answer(200, listOf(["bob", bob]));
    await Promise.all(sends);
    expect(row("w3").destination_ref).toBe(bob);
    expect(link.ofKind("members.list")).toHaveLength(2);
    await enqueueSend(ports, { to: "@bob", message: "m" }, undefined);
    expect(link.ofKind("members.list")).toHaveLength(2);
  });

  it("is read from all pages of the list, and the list is kept on disk", async () => {
    const { ports, link, stores } = await setUp();
    const [bob, carol] = [generateMemberKeys().ed25519.public_key, generateMemberKeys().ed25519.public_key];
    link.goOnline();
    const sent = enqueueSend(ports, { to: "@carol", message: "m" }, undefined);
    (await link.requested("members.list")).answer(200, { ...listOf(["bob", bob]), next_cursor: bob });
    const second = await link.requested("members.list");
    expect(second.input).toMatchObject({ after: bob });
    second.answer(200, listOf(["carol", carol]));
    expect((await sent).status).toBe(202);
    await settle();
    const offline = new ScriptedLink();
    const log = recordingLog();
    const directory = createMemberDirectory({ store: stores.members, link: offline, log, requestTimeoutMs: 1 });
    expect(directory.keysOf("bob")).toEqual([bob]);
    expect(directory.nameOf(carol)).toBe("carol");
  });

  it("stays known when a list breaks off half way", async () => {
    const { ports, link } = await setUp();
    const bob = generateMemberKeys().ed25519.public_key;
    link.goOnline();
    const first = ports.directory.refresh();
    (await link.requested("members.list")).answer(200, listOf(["bob", bob]));
    expect(await first).toBe(true);
    const second = ports.directory.refresh();
    (await link.requested("members.list")).answer(200, { items: [], next_cursor: "aa" });
    (await link.requested("members.list")).end({ type: "connection_lost" });
    expect(await second).toBe(false);
    expect(ports.directory.keysOf("bob")).toEqual([bob]);
  });

  it("stays known when a list has no end, which is not listened to for ever", async () => {
    const { ports, link } = await setUp();
    const bob = generateMemberKeys().ed25519.public_key;
    link.automatic.set("members.list", () => ({ type: "answered", status: 200, body: listOf(["bob", bob]) }));
    expect(await ports.directory.refresh()).toBe(true);
    let asked = 0;
    link.automatic.set("members.list", () => {
      if (++asked > 1_000) return { type: "connection_lost" };
      return { type: "answered", status: 200, body: { items: [], next_cursor: `page-${asked}` } };
    });
    expect(await ports.directory.refresh()).toBe(false);
    expect(asked).toBe(200);
    expect(ports.directory.keysOf("bob")).toEqual([bob]);
  });

  it("is forgotten when the broker lists it no more", async () => {
    const { ports, link, stores } = await setUp();
    const bob = generateMemberKeys().ed25519.public_key;
    for (const list of [listOf(["bob", bob]), listOf(["robert", bob]), listOf()]) {
      const refreshed = ports.directory.refresh();
      (await link.requested("members.list")).answer(200, list);
      await refreshed;
    }
    expect(ports.directory.keysOf("bob")).toEqual([]);
    expect(ports.directory.keysOf("robert")).toEqual([]);
    expect(stores.members.load()).toEqual([]);
  });
});

describe("a send that cannot arrive", () => {
  const about = (refusal: string | null, hasRecipients = refusal === null) => ({
    type: "answered" as const,
    status: 200,
    body: { refusal, has_recipients: hasRecipients },
  });

  it("to a topic, queue or key that the broker does not have is refused with the next step, and consumes nothing", async () => {
    const { ports, link, wakes } = await setUp();
    link.goOnline();
    link.automatic.set("destination.state", () => about("destination_not_found"));
    const stranger = "ab".repeat(32);
    for (const [to, next] of [
      ["#news", "claudemesh topic create news"],
      ["queue:jobs", "claudemesh queue create jobs"],
      [`dm:${stranger}`, "claudemesh mesh members"],
    ] as const) {
      const sent = enqueueSend(ports, { to, message: "x", client_message_id: "free" }, undefined);
      await expect(sent).rejects.toMatchObject({
        code: "destination_not_found",
        message: expect.stringContaining(next),
      });
    }
    expect(wakes()).toBe(0);
    expect(ports.outbox.find("free")).toBeUndefined();
    link.automatic.set("destination.state", () => about("not_subscribed", true));
    await expect(enqueueSend(ports, { to: "#news", message: "x" }, undefined)).rejects.toMatchObject({
      code: "not_subscribed",
      message: expect.stringContaining("claudemesh topic subscribe news"),
    });
  });

  it("is queued unasked while the broker is away, and to this member itself at any time", async () => {
    const { ports, link, wakes } = await setUp();
    link.automatic.set("destination.state", () => about("destination_not_found"));
    await enqueueSend(ports, { to: "#news", message: "x" }, undefined);
    link.goOnline();
    await enqueueSend(ports, { to: "@self", message: "x" }, undefined);
    expect(wakes()).toBe(2);
    expect(link.ofKind("destination.state")).toEqual([]);
  });

  it("asks nothing while the destination is known, and an exact retry asks nothing ever", async () => {
    const { ports, link, clock } = await setUp();
    link.goOnline();
    const request = { to: "#news", message: "x", client_message_id: "n1" };
    await enqueueSend(ports, request, undefined);
    await enqueueSend(ports, { to: "#news", message: "y" }, undefined);
    expect(link.ofKind("destination.state")).toHaveLength(1);
    await clock.advance(3_600_000);
    link.automatic.set("destination.state", () => about("destination_not_found"));
    expect(await enqueueSend(ports, request, undefined)).toMatchObject({ status: 202, body: { duplicate: true } });
    expect(link.ofKind("destination.state")).toHaveLength(1);
  });

  it("by a name whose key was revoked goes to the member that has the name now, or to none", async () => {
    const current = generateMemberKeys().ed25519.public_key;
    let keys = [generateMemberKeys().ed25519.public_key];
    const directory = {
      ...emptyDirectory,
      keysOf: () => keys,
      isAnothers: () => false,
      refresh: async () => {
        keys = [current];
        return true;
      },
    };
    const { ports, link, row } = await setUp({ directory });
    link.goOnline();
    link.automatic.set("destination.state", ({ ref }) => about(ref === current ? null : "destination_not_found"));
    await enqueueSend(ports, { to: "@bob", message: "x", client_message_id: "b1" }, undefined);
    expect(row("b1").destination_ref).toBe(current);
    const refresh = async () => {
      keys = [];
      return true;
    };
    keys = [generateMemberKeys().ed25519.public_key];
    const gone = enqueueSend(
      { ...ports, directory: { ...directory, refresh } },
      { to: "@bob", message: "x" },
      undefined,
    );
    await expect(gone).rejects.toMatchObject({
      code: "destination_not_found",
      message: expect.stringMatching(/called bob.*claudemesh mesh members.*Nothing was queued/),
    });
  });

  it("to a topic without other readers, or while the broker is away or has asked for a pause, says so", async () => {
    const limited = { since: 1, until: 2 };
    const { ports, link } = await setUp({ way: () => ({ rate_limited: limited }) });
    link.goOnline();
    link.automatic.set("destination.state", () => about(null, false));
    const request = { to: "#news", message: "x", client_message_id: "n1" };
    const first = await enqueueSend(ports, request, undefined);
    expect(first).toMatchObject({ status: 202, body: { subscribers: 0, rate_limited: limited } });
    expect((await enqueueSend(ports, request, undefined)).body).toMatchObject({
      duplicate: true,
      rate_limited: limited,
    });
  });

  it("of a former member is refused, except that what is known is answered", async () => {
    const { ports } = await setUp();
    const request = { to: "#news", message: "x", client_message_id: "n1" };
    await enqueueSend(ports, request, undefined);
    const ended: EnqueuePorts = {
      ...ports,
      membership: {
        require: () => {
          throw new MeshError("membership_ended");
        },
      },
    };
    expect(await enqueueSend(ended, request, undefined)).toMatchObject({ status: 202, body: { duplicate: true } });
    const fresh = enqueueSend(ended, { ...request, client_message_id: "n2" }, undefined);
    await expect(fresh).rejects.toMatchObject({ code: "membership_ended", status: 403 });
    expect(ports.outbox.find("n2")).toBeUndefined();
  });
});

describe("a retry that shares a failed transaction with new sends", () => {
  const request = { to: "#news", message: "x", client_message_id: "n1" };
  const failing = async () => {
    throw new StorageError("disk_full", "no room");
  };

  it("is answered from its row, and a new send is not", async () => {
    const { ports } = await setUp();
    await enqueueSend(ports, request, undefined);
    const full = { ...ports, outbox: { ...ports.outbox, insert: failing } };
    expect(await enqueueSend(full, request, undefined)).toMatchObject({ status: 202, body: { duplicate: true } });
    const other = enqueueSend(full, { ...request, message: "y" }, undefined);
    await expect(other).resolves.toMatchObject({ status: 409 });
    const fresh = enqueueSend(full, { ...request, client_message_id: "n2" }, undefined);
    await expect(fresh).rejects.toMatchObject({ kind: "disk_full" });
  });

  it("is answered from its row where there is no room to pin the name that it was sent to", async () => {
    const bob = generateMemberKeys().ed25519.public_key;
    const { ports } = await setUp({ directory: { ...emptyDirectory, keysOf: () => [bob] } });
    const toBob = { ...request, to: "@bob" };
    await enqueueSend(ports, toBob, undefined);
    const full = { ...ports, pins: { ...ports.pins, use: failing } };
    expect(await enqueueSend(full, toBob, undefined)).toMatchObject({ status: 202, body: { duplicate: true } });
    const fresh = enqueueSend(full, { ...toBob, client_message_id: "n2" }, undefined);
    await expect(fresh).rejects.toMatchObject({ kind: "disk_full" });
  });

  it("never answers for a row of its own, which may not be on disk", async () => {
    const { ports } = await setUp();
    const insert: EnqueuePorts["outbox"]["insert"] = async (row, as) => {
      await ports.outbox.insert(row, as);
      return failing();
    };
    const stored = { ...ports, outbox: { ...ports.outbox, insert } };
    await expect(enqueueSend(stored, request, undefined)).rejects.toMatchObject({ kind: "disk_full" });
  });
});

it("a send that finds no room is taken where done rows make some, and a retry makes none", async () => {
  let room = false;
  const made: number[] = [];
  const gauge: EnqueuePorts["gauge"] = {
    admit: () => {
      if (!room) throw new MeshError("insufficient_storage");
    },
    makeRoom: async (bytes) => {
      made.push(bytes);
      room = true;
      return true;
    },
  };
  const { ports } = await setUp({ gauge });
  const request = { to: "#news", message: "hello", client_message_id: "n1" };
  expect(await enqueueSend(ports, request, undefined)).toMatchObject({ status: 202, body: { duplicate: false } });
  room = false;
  expect(await enqueueSend(ports, request, undefined)).toMatchObject({ status: 202, body: { duplicate: true } });
  expect(made).toEqual([5]);
});

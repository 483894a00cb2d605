// Direct messages that an earlier version sealed, as envelope version "2": rows that were queued before the upgrade are sent as
// they are, and a receiver that was upgraded reads them.
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { nodeSha256 } from "@claudemesh/client/internal/node-sha256";
import { memberKeysFromSeed } from "@claudemesh/client/keys";
import { fingerprint } from "@claudemesh/protocol/messages/fingerprint";
import { openSqlite } from "@claudemesh/storage/sqlite";
import { migrateSqlite } from "@claudemesh/storage/sqlite-migrations";
import { describe, expect, it } from "vitest";
import { outboxMigrations } from "./stores/sqlite/open-databases.ts";
import { deliver, delivery } from "./testing/deliveries.ts";
import { settle } from "./testing/scripted-link.ts";
import { startTestDaemon, type TestHome, temporaryHome } from "./testing/test-daemon.ts";

type Vectors = {
  readonly members: readonly { readonly name: string; readonly ed25519: { readonly secret_key: string } }[];
  readonly cases: readonly { readonly name: string; readonly sealed: string; readonly body: string }[];
};

const vectors = JSON.parse(
  readFileSync(fileURLToPath(import.meta.resolve("@claudemesh/protocol/vectors/sealing.json")), "utf8"),
) as Vectors;

/** Alice sealed it for bob, as version "2". */
const sealed = vectors.cases[0] ?? expect.unreachable();
const homeOf = (name: string) => {
  const seed = vectors.members.find((member) => member.name === name)?.ed25519.secret_key ?? "";
  return temporaryHome(undefined, memberKeysFromSeed(Buffer.from(seed, "hex")));
};

/** The migrations that the version had which wrote version "2". */
const earlierMigrations = 4;

async function queueVersion2(at: TestHome, recipient: string): Promise<void> {
  const payload = Buffer.from(sealed.sealed, "hex");
  const envelope = {
    version: "2",
    destination: { kind: "dm", ref: recipient },
    replyToId: undefined,
    priority: "next",
    canonicalMeta: '{"run":7}',
    body: payload,
  } as const;
  const db = openSqlite({ path: at.paths.outboxDb });
  await migrateSqlite(db, outboxMigrations().slice(0, earlierMigrations));
  const now = Date.now();
  db.sql(`INSERT INTO outbox (id, client_message_id, request_fingerprint, wire_fingerprint, to_address, destination_kind,
      destination_ref, priority, meta, envelope_version, enqueued_at, next_attempt_at, status, payload)
    VALUES ('01K9ZB3V5N6Q8R0S2T4V6X8Z0A', 'old-1', ?, ?, ?, 'dm', ?, 'next', '{"run":7}', '2', ?, ?, 'pending', ?)`).run(
    randomBytes(32),
    fingerprint(nodeSha256, envelope),
    `dm:${recipient}`,
    recipient,
    now,
    now,
    payload,
  );
  db.close();
}

describe("a message that was sealed before the upgrade", () => {
  it("and is queued, is sent with the bytes that it had, and read by an upgraded receiver", async () => {
    const bob = await startTestDaemon({ at: homeOf("bob") });
    const home = homeOf("alice");
    await queueVersion2(home, bob.keys.ed25519.public_key);
    const alice = await startTestDaemon({ at: home });
    alice.link.goOnline();
    const { input, answer } = await alice.link.requested("send");
    const body_base64 = Buffer.from(sealed.sealed, "hex").toString("base64");
    expect(input).toMatchObject({ client_message_id: "old-1", envelope_version: "2", body_base64, meta: { run: 7 } });
    answer(201, { broker_message_id: "b-1", history_id: 1 });

    const { body: _, ...item } = delivery(1, {
      client_message_id: "old-1",
      destination: { kind: "dm", ref: bob.keys.ed25519.public_key },
      sender_pubkey: home.keys.ed25519.public_key,
      envelope_version: "2",
      meta: { run: 7 },
    });
    deliver(bob.link, { ...item, body_base64 });
    await settle();
    const { body } = await bob.call("GET", "/v1/inbox");
    expect(body.items).toMatchObject([{ body: "hello, bob", sealed: true, meta: { run: 7 }, topic: null }]);
  });

  it("is shown again under another id, with another meta, where its broker says so: nothing in that box says otherwise", async () => {
    const [bob, alice] = [await startTestDaemon({ at: homeOf("bob") }), homeOf("alice")];
    const box = {
      destination: { kind: "dm", ref: bob.keys.ed25519.public_key },
      sender_pubkey: alice.keys.ed25519.public_key,
      envelope_version: "2",
      body_base64: Buffer.from(sealed.sealed, "hex").toString("base64"),
    } as const;
    for (const [at, meta] of [{ run: 7 }, { run: 8 }].entries()) {
      const { body: _, ...item } = delivery(at + 1, { ...box, meta });
      deliver(bob.link, item);
    }
    await settle();
    const { body } = await bob.call("GET", "/v1/inbox");
    const shown = { body: "hello, bob", sealed: true };
    expect(body.items).toMatchObject([
      { ...shown, meta: { run: 7 } },
      { ...shown, meta: { run: 8 } },
    ]);
  });
});

// Presence over the real store, with a clock of our own: which daemons are notified of which, and when a lease that no broker
// renews is missed.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { membersMigrations } from "@claudemesh/members/sqlite";
import type { PresenceStore } from "@claudemesh/messages/ports/presence";
import { createSqliteMessagesStore, messagesMigrations } from "@claudemesh/messages/sqlite";
import { GroupCommit } from "@claudemesh/storage/group-commit";
import { openSqlite } from "@claudemesh/storage/sqlite";
import { migrateSqlite } from "@claudemesh/storage/sqlite-migrations";
import { pino } from "pino";
import { expect, onTestFinished, test, vi } from "vitest";
import { ConnectionRegistry } from "./connection-registry.ts";
import { PresenceKeeper, type PresentDaemon, presenceLeaseMs, presencePushPeersMax } from "./presence-keeper.ts";

const meshId = "mesh-1";

class Mesh {
  nowMs = 1_700_000_000_000;
  readonly store: PresenceStore;
  readonly #db;

  constructor(db: ReturnType<typeof openSqlite>, store: PresenceStore) {
    this.#db = db;
    this.store = store;
  }

  static async start(): Promise<Mesh> {
    const folder = mkdtempSync(join(tmpdir(), "claudemesh-presence-"));
    const db = openSqlite({ path: join(folder, "broker.db") });
    await migrateSqlite(db, [...membersMigrations(), ...messagesMigrations()]);
    const commit = new GroupCommit(db);
    onTestFinished(() => {
      commit.close();
      db.close();
      rmSync(folder, { recursive: true, force: true });
    });
    db.sql("INSERT INTO mesh (id, name, created_at) VALUES (?, 'acme', 1)").run(meshId);
    const rate = { limit: 1, windowSeconds: 1 };
    return new Mesh(db, createSqliteMessagesStore(db, commit, rate).presence);
  }

  addMember(name: string): string {
    this.#db
      .sql("INSERT INTO member (mesh_id, pubkey, name, role, joined_at) VALUES (?, ?, ?, 'member', 1)")
      .run(meshId, name, name);
    return name;
  }

  /** A broker process with nothing of its own but its connections. */
  startBroker(): Broker {
    return new Broker(this);
  }
}

class Broker {
  readonly connections = new ConnectionRegistry();
  readonly keeper: PresenceKeeper;
  #ids = 0;

  constructor(mesh: Mesh) {
    const log = pino({ level: "silent" });
    this.keeper = new PresenceKeeper({
      store: () => mesh.store,
      connections: this.connections,
      nowMs: () => mesh.nowMs,
      log,
    });
  }

  /** A daemon, and what it hears. */
  connect(pubkey: string) {
    const heard: string[] = [];
    const daemon: PresentDaemon = {
      lease: { meshId, pubkey, connectionId: `${pubkey}-${++this.#ids}` },
      push: (frame) => heard.push(`${frame.type} ${"pubkey" in frame ? frame.pubkey : ""}`),
    };
    this.keeper.join(daemon);
    return { heard, close: () => this.keeper.leave(daemon) };
  }
}

test("daemons are notified which members come and go in their mesh, but not of themselves", async () => {
  const mesh = await Mesh.start();
  const [alice, bob] = [mesh.addMember("alice"), mesh.addMember("bob")];
  const broker = mesh.startBroker();
  const first = broker.connect(alice);
  const second = broker.connect(bob);
  await vi.waitFor(() => expect(first.heard).toEqual(["peer_join bob"]));
  second.close();
  await vi.waitFor(() => expect(first.heard).toEqual(["peer_join bob", "peer_leave bob"]));
  expect(second.heard.filter((frame) => frame.endsWith("bob"))).toEqual([]);
});

test("a member with two connections comes once and goes once", async () => {
  const mesh = await Mesh.start();
  const [alice, bob] = [mesh.addMember("alice"), mesh.addMember("bob")];
  const broker = mesh.startBroker();
  const watcher = broker.connect(alice);
  const twice = [broker.connect(bob), broker.connect(bob)];
  await vi.waitFor(() => expect(watcher.heard).toEqual(["peer_join bob"]));
  twice[0]?.close();
  await broker.keeper.renew();
  twice[1]?.close();
  await vi.waitFor(() => expect(watcher.heard).toEqual(["peer_join bob", "peer_leave bob"]));
});

test("a member that becomes invisible has gone, and comes back when it is seen again", async () => {
  const mesh = await Mesh.start();
  const [alice, bob] = [mesh.addMember("alice"), mesh.addMember("bob")];
  const broker = mesh.startBroker();
  const watcher = broker.connect(alice);
  broker.connect(bob);
  await vi.waitFor(() => expect(watcher.heard).toEqual(["peer_join bob"]));
  for (const [visible, frame] of [
    [false, "peer_leave bob"],
    [true, "peer_join bob"],
  ] as const) {
    await mesh.store.setProfile(meshId, bob, { visible }, mesh.nowMs);
    broker.connections.presenceChanged(meshId);
    await vi.waitFor(() => expect(watcher.heard.at(-1)).toBe(frame));
  }
});

test("peers of another broker are announced with the next renewal, and missed when that broker has died", async () => {
  const mesh = await Mesh.start();
  const [alice, bob] = [mesh.addMember("alice"), mesh.addMember("bob")];
  const [here, there] = [mesh.startBroker(), mesh.startBroker()];
  const watcher = here.connect(alice);
  await here.keeper.renew();
  there.connect(bob);
  await there.keeper.renew();
  await here.keeper.renew();
  await vi.waitFor(() => expect(watcher.heard).toEqual(["peer_join bob"]));
  // That broker renews no more; this one does.
  for (let waitedMs = 0; waitedMs < presenceLeaseMs; waitedMs += 15_000) {
    expect(watcher.heard).toEqual(["peer_join bob"]);
    mesh.nowMs += 15_000;
    await here.keeper.renew();
  }
  await vi.waitFor(() => expect(watcher.heard).toEqual(["peer_join bob", "peer_leave bob"]));
  const left = await mesh.store.peers({ meshId, reader: undefined, after: "", limit: 10 }, mesh.nowMs);
  expect(left.items.map(({ pubkey }) => pubkey)).toEqual([alice]);
});

test("a broker that stops gives its leases up at once", async () => {
  const mesh = await Mesh.start();
  const [alice, bob] = [mesh.addMember("alice"), mesh.addMember("bob")];
  const [here, there] = [mesh.startBroker(), mesh.startBroker()];
  const watcher = here.connect(alice);
  const gone = there.connect(bob);
  await there.keeper.renew();
  await here.keeper.renew();
  await vi.waitFor(() => expect(watcher.heard).toEqual(["peer_join bob"]));
  there.keeper.stop();
  gone.close();
  await here.keeper.renew();
  await vi.waitFor(() => expect(watcher.heard).toEqual(["peer_join bob", "peer_leave bob"]));
});

test("in a mesh of very many no daemon is notified of each; when it has shrunk, the difference is pushed", async () => {
  const mesh = await Mesh.start();
  const broker = mesh.startBroker();
  const watcher = broker.connect(mesh.addMember("watcher"));
  const early = broker.connect(mesh.addMember("early"));
  await vi.waitFor(() => expect(watcher.heard).toEqual(["peer_join early"]));
  const crowd = Array.from({ length: presencePushPeersMax }, (_, index) => mesh.addMember(`crowd-${index}`));
  const leases = crowd.map((pubkey) => ({ meshId, pubkey, connectionId: "elsewhere" }));
  await mesh.store.hold(leases, mesh.nowMs, mesh.nowMs + 1_000_000);
  await broker.keeper.renew();
  early.close();
  await broker.keeper.renew();
  const late = broker.connect(mesh.addMember("late"));
  await broker.keeper.renew();
  expect(watcher.heard).toEqual(["peer_join early"]);
  await mesh.store.release(leases);
  await broker.keeper.renew();
  await vi.waitFor(() => expect(watcher.heard).toEqual(["peer_join early", "peer_join late", "peer_leave early"]));
  expect(late.heard).toEqual(["peer_leave early"]);
});

test("a store that fails costs no connection: the lease is taken with the next renewal", async () => {
  const mesh = await Mesh.start();
  const [alice, bob] = [mesh.addMember("alice"), mesh.addMember("bob")];
  const broker = mesh.startBroker();
  const hold = vi.spyOn(mesh.store, "hold").mockRejectedValue(new Error("made to fail"));
  const watcher = broker.connect(alice);
  broker.connect(bob);
  await broker.keeper.renew();
  hold.mockRestore();
  expect(watcher.heard).toEqual([]);
  await broker.keeper.renew();
  await vi.waitFor(() => expect(watcher.heard).toEqual(["peer_join bob"]));
});

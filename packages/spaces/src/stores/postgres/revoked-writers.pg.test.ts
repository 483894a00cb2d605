// A member who is revoked while a write of it is under way: it is committed before the revocation is answered, or it
// is refused. The revocation is the members' own, on connections of its own.
import { createPostgresMembersStore } from "@claudemesh/members/postgres";
import { openPostgres, type Postgres } from "@claudemesh/storage/postgres";
import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createTestDatabase } from "../../../../../tests/support/services.ts";
import { openSession } from "../../services/open-session.ts";
import { alice, bob, brief, idsOf, refusal, type Session, send, set, World } from "../suites/world.ts";
import { createPostgresSpacesStore } from "./spaces-store.ts";
import { PostgresHarness } from "./testing/postgres-harness.ts";

const database = await createTestDatabase("revoked_writers");
afterAll(() => database?.drop());

const url = database?.url ?? "";

describe.skipIf(database === undefined)("while its member is revoked", () => {
  const harness = new PostgresHarness(url);
  let watching: pg.Client;
  let postgres: Postgres;
  let world: World;
  let session: Session;

  beforeAll(async () => {
    await harness.connect();
    watching = new pg.Client({ connectionString: url });
    await watching.connect();
    postgres = openPostgres({ url, poolSize: 4, onIdleError: () => undefined });
  });
  afterAll(async () => {
    await postgres.close();
    await watching.end();
    await harness.end();
  });
  beforeEach(async () => {
    world = await World.start(harness);
    await world.query(`UPDATE mesh.member SET role = 'owner' WHERE pubkey = '${bob}'`);
    session = await world.session();
  });
  afterEach(() => world.close());

  const revokeAlice = () => createPostgresMembersStore(postgres).revokeMember(harness.meshId, bob, alice, world.nowMs);

  async function until(isThere: () => Promise<boolean>): Promise<void> {
    while (!(await isThere())) await new Promise(setImmediate);
  }

  /** Whether such a statement waits for a lock. */
  async function waits(statement: string): Promise<boolean> {
    const { rows } = await watching.query(
      `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query ~ $1`,
      [statement],
    );
    return rows.length > 0;
  }

  /** Begins the revocation; resolves once it waits, or is over. */
  async function beginRevocation() {
    let over = false;
    const outcome = revokeAlice().finally(() => {
      over = true;
    });
    await until(async () => over || (await waits("^(SELECT 1 FROM|UPDATE) mesh.member ")));
    return { outcome, isOver: () => over };
  }

  /** A store that stands before its first COMMIT until a revocation has begun. */
  function storeThatStands() {
    const stood: { revocation?: Awaited<ReturnType<typeof beginRevocation>>; wasOver?: boolean } = {};
    const before = async () => {
      stood.revocation ??= await beginRevocation();
      stood.wasOver ??= stood.revocation.isOver();
    };
    return { stood, store: harness.createStore({ before, after: () => undefined }) };
  }

  test("a commit that was decided is committed first, and the next is refused", async () => {
    const { stood, store } = storeThatStands();
    const verdict = await session.send(session.build([set("t:1", { n: 1 })]), session.opened, store);
    expect(stood.wasOver).toBe(false);
    expect(await stood.revocation?.outcome).toBe("revoked");
    expect(brief(verdict)).toBe(1);
    expect(await refusal(session.commit([set("t:1", { n: 2 })]))).toBe("unauthorized");
    expect(await world.lastSeq()).toBe(1);
  });

  test("a session that is being opened is opened first, and the next is refused", async () => {
    const { stood, store } = storeThatStands();
    const open = (openId: string) => openSession(world.ports(store), world.space, alice, { openId });
    await open("first");
    expect(stood.wasOver).toBe(false);
    expect(await stood.revocation?.outcome).toBe("revoked");
    expect(await refusal(open("second"))).toBe("unauthorized");
  });

  test("an optimistic commit that waits for the space is refused when its turn comes after the revocation", async () => {
    const store = harness.createStore();
    const commit = (n: number) => session.send(session.build([set("t:1", { n })]), session.opened, store);
    for (const n of [1, 2]) await commit(n);
    const before = { ...harness.optimistic };
    await world.query("BEGIN");
    await world.query("SELECT 1 FROM mesh.space FOR NO KEY UPDATE");
    const late = refusal(commit(3));
    await until(() => waits("^WITH\\s+held AS MATERIALIZED"));
    expect(await revokeAlice()).toBe("revoked");
    await world.query("COMMIT");
    expect(await late).toBe("unauthorized");
    expect(await world.lastSeq()).toBe(2);
    expect(harness.optimistic).toEqual({ ...before, overtaken: before.overtaken + 1 });
  });

  test("a commit that carries messages gets the mesh's lock: a revocation that waits for it does not hold that", async () => {
    let revocation: Awaited<ReturnType<typeof beginRevocation>> | undefined;
    const store = createPostgresSpacesStore(
      { committing: postgres, common: postgres },
      {
        acceptSends: async (tx, meshId, sends) => {
          revocation ??= await beginRevocation();
          expect(revocation.isOver()).toBe(false);
          await tx.query("SELECT 1 FROM mesh.mesh WHERE id = $1 FOR NO KEY UPDATE NOWAIT", [meshId]);
          return { type: "accepted", recipients: idsOf(sends) };
        },
      },
    );
    const commit = session.build([set("t:1", { n: 1 })], { sends: [send("m-1")] });
    expect(brief(await session.send(commit, session.opened, store))).toBe(1);
    expect(await revocation?.outcome).toBe("revoked");
  });
});

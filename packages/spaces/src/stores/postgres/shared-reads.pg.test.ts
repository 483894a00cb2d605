// Reads at the same time share questions, and none is answered by a question that left before the read began.
import { Postgres, type PostgresValue } from "@claudemesh/storage/postgres";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { createTestDatabase } from "../../../../../tests/support/services.ts";
import type { SpacesStore } from "../../ports.ts";
import { readMany } from "../../services/query.ts";
import { createSpace } from "../../services/spaces.ts";
import { alice, set, World } from "../suites/world.ts";
import { createPostgresSpacesStore } from "./spaces-store.ts";
import { acceptSends, PostgresHarness } from "./testing/postgres-harness.ts";

const database = await createTestDatabase("shared_reads");
afterAll(() => database?.drop());

/** Notes what is asked, and keeps answers to itself while it is held. */
class WatchedPostgres extends Postgres {
  readonly asked: string[] = [];
  held: Promise<void> | undefined;

  override async read<Row>(text: string, values?: readonly PostgresValue[], name = ""): Promise<Row[]> {
    this.asked.push(name);
    const rows = await super.read<Row>(text, values, name);
    await this.held;
    return rows;
  }
}

describe.skipIf(database === undefined)("reads of spaces", () => {
  const url = database?.url ?? "";
  const harness = new PostgresHarness(url);
  let world: World;
  let common: WatchedPostgres;
  let store: SpacesStore;

  beforeAll(() => harness.connect());
  afterAll(() => harness.end());
  beforeEach(async () => {
    world = await World.start(harness);
    common = new WatchedPostgres({ url, poolSize: 4, onIdleError: () => undefined });
    onTestFinished(() => common.close());
    store = createPostgresSpacesStore({ committing: common, common }, { acceptSends });
    const session = await world.session();
    await session.write(["t:1", "t:2", "t:3"].map((id) => set(id, { id })));
  });
  afterEach(() => world.close());

  const readOne = async (id: string, spaceId = world.space.spaceId, atSeq?: number) => {
    const { items } = await readMany({ store }, { ...world.space, spaceId }, [id], { atSeq });
    return items[0]?.document;
  };

  test("share their questions, and each gets its own answer", async () => {
    await createSpace(
      world.ports(),
      { ...world.space, spaceId: "other" },
      { signedWrites: "optional", createdBy: alice },
    );
    const asked = [
      readOne("t:1"),
      readOne("t:3"),
      readOne("t:9"),
      readOne("t:1", "other"),
      readOne("t:2", undefined, 1),
      readOne("t:2", undefined, 0),
      readOne("t:1", "nowhere"),
      readOne("t:1", undefined, 99),
    ];
    const settled = await Promise.allSettled(asked);
    expect(settled.map((each) => (each.status === "fulfilled" ? each.value : each.reason.code))).toEqual([
      { value: { id: "t:1" } },
      { value: { id: "t:3" } },
      undefined,
      undefined,
      { value: { id: "t:2" } },
      undefined,
      "space_not_found",
      "seq_out_of_range",
    ]);
    const counts = Object.fromEntries([...Map.groupBy(common.asked, String)].map(([name, all]) => [name, all.length]));
    expect(counts).toEqual({ space: 3, space_branches: 2, space_tails: 2 });
  });

  test("see what was committed before they were asked, whatever is on its way", async () => {
    const answers = Promise.withResolvers<void>();
    common.held = answers.promise;
    const early = [readOne("t:1"), new Promise((resolve) => setImmediate(resolve)).then(() => readOne("t:1"))];
    await expect.poll(() => common.asked).toEqual(["space", "space"]);
    const session = await world.session();
    await session.write([set("t:1", { id: "new" })]);
    const late = readOne("t:1");
    answers.resolve();
    expect(await late).toEqual({ value: { id: "new" } });
    expect(await Promise.all(early)).toEqual([{ value: { id: "t:1" } }, { value: { id: "t:1" } }]);
  });
});

// One message to many: how often the server is asked for it, and what a removed one does to its neighbours.
import { openPostgres } from "@claudemesh/storage/postgres";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createTestDatabase } from "../../../../../tests/support/services.ts";
import { ampleRate, dm, send, topic, World } from "../suites/world.ts";
import { selectUnsettledOf } from "./deliveries.ts";
import type { Reading } from "./stored-accepts.ts";
import { PostgresHarness } from "./testing/postgres-harness.ts";

const database = await createTestDatabase("deliveries");
afterAll(() => database?.drop());

describe.skipIf(database === undefined)("recipients who ask together", () => {
  const url = database?.url ?? "";
  const harness = new PostgresHarness(url);
  const postgres = openPostgres({ url, poolSize: 1, onIdleError: () => undefined });
  let asked = 0;
  const counting: Reading = {
    query: (text, values) => {
      asked += 1;
      return postgres.read(text, values);
    },
  };
  beforeAll(() => harness.connect());
  afterAll(async () => {
    await postgres.close();
    await harness.end();
  });

  test("are answered by two questions, and each message is read once", async () => {
    const world = await World.start(harness, ampleRate);
    const [alice, bob, carol] = await world.threeMembers();
    await world.addTopic("news", [bob, carol]);
    for (const id of ["m1", "m2", "m3"]) await world.accept(alice, send(id, topic("news")));
    await world.accept(alice, send("m4", dm(bob)));
    const [mesh] = await postgres.read<{ id: string }>("SELECT id FROM mesh.mesh");
    const pageOf = (recipient: string) => ({ meshId: mesh?.id ?? "", recipient, after: 0, limit: 10 });
    asked = 0;
    const [bobs = [], carols = [], alices] = await selectUnsettledOf(counting, [bob, carol, alice].map(pageOf));
    expect(asked).toBe(2);
    expect(bobs.map((item) => item.client_message_id)).toEqual(["m1", "m2", "m3", "m4"]);
    expect(carols.map((item, at) => item === bobs[at])).toEqual([true, true, true]);
    expect(alices).toEqual([]);

    // As if retention came between the two questions; a short page would say that there is nothing behind it.
    await world.query("DELETE FROM mesh.topic_message WHERE client_message_id = 'm1'");
    const [shorter = [], others = []] = await selectUnsettledOf(
      counting,
      [bob, carol].map((recipient) => ({ ...pageOf(recipient), limit: 2 })),
    );
    expect(shorter.map((item) => item.client_message_id)).toEqual(["m2", "m3"]);
    expect(others.map((item) => item.client_message_id)).toEqual(["m2", "m3"]);
    await world.close();
  });
});

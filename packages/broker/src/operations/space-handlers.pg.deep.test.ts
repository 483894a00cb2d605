// Spaces over a real broker's HTTP and WebSocket, on PostgreSQL and Redis.
import { afterAll, describe } from "vitest";
import { createTestDatabase, findRedis } from "../../../../tests/support/services.ts";
import { meshesOnOneBroker } from "../testing/space-wire-world.ts";
import { describeSpacesOnTheWire } from "../testing/spaces-on-the-wire.ts";

const database = await createTestDatabase("space_handlers");
const redis = database === undefined ? undefined : await findRedis();
afterAll(async () => {
  await database?.drop();
  await redis?.stop();
});

describe.skipIf(redis === undefined)("spaces on the wire, on PostgreSQL", () => {
  const store = { store: database?.url ?? "", redis: redis?.url ?? "" };
  describeSpacesOnTheWire(meshesOnOneBroker((folder) => ({ ...store, "admin-token-file": `${folder}/admin-token` })));
});

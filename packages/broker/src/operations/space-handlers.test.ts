// Spaces over a real broker's HTTP and WebSocket, on SQLite.
import { describe } from "vitest";
import { meshesOnOneBroker } from "../testing/space-wire-world.ts";
import { describeSpacesOnTheWire } from "../testing/spaces-on-the-wire.ts";

describe("spaces on the wire, on SQLite", () => {
  describeSpacesOnTheWire(meshesOnOneBroker((folder) => ({ store: `sqlite:${folder}/broker.db` })));
});

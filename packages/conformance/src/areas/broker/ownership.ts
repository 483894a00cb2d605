// 1.2 at the broker: when an id is consumed, and which member owns it.
import { expectAnswer, expectRefusal, expectThat, fieldOf } from "../../frame/expect.ts";
import { absent, aUuidV7 } from "../../frame/pattern.ts";
import { type Scenario, scenario } from "../../frame/scenario.ts";
import { fingerprintOf } from "../../vectors.ts";
import { accept, type BrokerWorld, strangersKey, toMember, toQueue, toTopic } from "./world.ts";

export const ownershipScenarios: readonly Scenario<BrokerWorld>[] = [
  scenario("1.2", "owner", "the same id from another member is a conflict, whatever the content", async (world) => {
    const send = { client_message_id: world.fresh("owned"), destination: toMember(world.bob), body: "mine" };
    await accept(world.alice, send);
    for (const body of ["mine", "other"]) {
      const answer = await world.carol.call("POST", "/messages", { ...send, body });
      const leaks = { broker_message_id: absent, history_id: absent, broker_fingerprint_prefix: absent };
      const conflict = "client_id_owned_by_another_member";
      expectRefusal(answer, 409, "idempotency_key_reused", { conflict, ...leaks });
    }
    expectAnswer(await world.alice.call("POST", "/messages", send), 200, { duplicate: true });
  }),
  scenario(
    "1.2",
    "own-ids-only",
    "another member's id is `taken` to fate and fence, and tells nothing else",
    async (world) => {
      const send = { client_message_id: world.fresh("secret"), destination: toMember(world.bob), body: "mine" };
      await accept(world.alice, send);
      const path = `/messages/by-client-id/${send.client_message_id}`;
      const fingerprint = fingerprintOf(send);
      const silent = { fate: "taken", broker_message_id: absent, history_id: absent };
      expectAnswer(await world.carol.call("GET", `${path}?fingerprint=${fingerprint}`), 200, silent);
      expectAnswer(await world.carol.call("POST", `${path}/fence`, { fingerprint }), 200, silent);
      expectAnswer(await world.alice.call("GET", `${path}?fingerprint=${fingerprint}`), 200, { fate: "committed" });
    },
  ),
  scenario("1.2", "ids-are-uuids", "broker_message_id and mesh_id are UUIDv7", async (world) => {
    const send = { client_message_id: world.fresh("uuid"), destination: toMember(world.bob), body: "x" };
    expectAnswer(await accept(world.alice, send), 201, { broker_message_id: aUuidV7 });
    const peer = await world.dial();
    expectAnswer(await peer.sayHello(world.alice, "client"), 200, { mesh_id: aUuidV7, mesh: world.meshRef.mesh });
  }),
  scenario(
    "1.2",
    "refusal-consumes-nothing",
    "a refused send leaves its id free, until the reason is gone",
    async (world) => {
      const topic = world.fresh("later");
      const send = { client_message_id: world.fresh("b2"), destination: toTopic(topic), body: "x" };
      const path = `/messages/by-client-id/${send.client_message_id}?fingerprint=${fingerprintOf(send)}`;
      for (let tries = 0; tries < 2; tries++) {
        expectRefusal(await world.alice.call("POST", "/messages", send), 404, "destination_not_found");
        expectAnswer(await world.alice.call("GET", path), 200, { fate: "none" });
      }
      expectAnswer(await world.alice.call("POST", "/topics", { name: topic }), 201);
      await accept(world.alice, send);
    },
  ),
  scenario(
    "1.2",
    "refused-id-with-other-content",
    "an id that was refused may be used with other content",
    async (world) => {
      const id = world.fresh("again");
      const wrong = [{ kind: "dm", ref: strangersKey() }, toQueue(world.fresh("none")), toTopic(world.fresh("none"))];
      for (const destination of wrong) {
        const answer = await world.alice.call("POST", "/messages", { client_message_id: id, destination, body: "x" });
        expectRefusal(answer, 404, "destination_not_found");
      }
      await accept(world.alice, { client_message_id: id, destination: toMember(world.bob), body: "y" });
    },
  ),
  scenario("1.2", "id-is-per-mesh", "one id in two meshes is two messages", async (world) => {
    const other = await world.createMesh(world.fresh("other"), "olga");
    const id = world.fresh("both");
    const here = await accept(world.alice, { client_message_id: id, destination: toMember(world.bob), body: "x" });
    const there = await accept(other, { client_message_id: id, destination: toMember(other), body: "x" });
    const ids = [fieldOf(here, "broker_message_id"), fieldOf(there, "broker_message_id")];
    expectThat(ids[0] !== ids[1], "two broker_message_ids", ids, there.request);
  }),
];

// 1.8 at the broker: sealed envelopes pass through byte for byte.
import { expectAnswer, expectRefusal, fieldOf } from "../../frame/expect.ts";
import { absent } from "../../frame/pattern.ts";
import { type Scenario, scenario } from "../../frame/scenario.ts";
import { fingerprintOf, readVectors } from "../../vectors.ts";
import { accept, type BrokerWorld, toMember, toQueue, toTopic } from "./world.ts";

type SealingVectors = { readonly cases: readonly { readonly sealed: string }[] };

export const sealingScenarios: readonly Scenario<BrokerWorld>[] = [
  scenario("1.8", "bytes", "a sealed body comes back byte-equal, as base64, with envelope version 2", async (world) => {
    for (const { sealed } of readVectors<SealingVectors>("sealing").cases) {
      const base64 = Buffer.from(sealed, "hex").toString("base64");
      const fields = {
        client_message_id: world.fresh("seal"),
        destination: toMember(world.bob),
        envelope_version: "2",
      };
      const sent = await accept(world.alice, { ...fields, body_base64: base64 });
      const page = await world.bob.call("GET", `/history?after=${Number(fieldOf(sent, "history_id")) - 1}&limit=1`);
      expectAnswer(page, 200, { items: [{ envelope_version: "2", body_base64: base64, body: absent }] });
    }
  }),
  scenario("1.8", "version-counts", "the wire fingerprint of a sealed envelope uses version 2", async (world) => {
    const fields = { client_message_id: world.fresh("seal"), destination: toMember(world.bob), body_base64: "AAAA" };
    const sealed = { ...fields, envelope_version: "2" };
    await accept(world.alice, sealed);
    expectRefusal(await world.alice.call("POST", "/messages", fields), 409, "idempotency_key_reused");
    const fate = `/messages/by-client-id/${fields.client_message_id}?fingerprint=`;
    expectAnswer(await world.alice.call("GET", fate + fingerprintOf(sealed)), 200, { fate: "committed" });
    expectAnswer(await world.alice.call("GET", fate + fingerprintOf(fields)), 200, { fate: "taken" });
  }),
  scenario("1.8", "dms-only", "only direct messages are sealed", async (world) => {
    for (const destination of [toTopic(await world.topic()), toQueue(await world.queue())]) {
      const fields = {
        client_message_id: world.fresh("seal"),
        destination,
        body_base64: "AAAA",
        envelope_version: "2",
      };
      expectRefusal(await world.alice.call("POST", "/messages", fields), 400);
    }
  }),
];

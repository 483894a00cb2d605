// 1.8 at the broker: sealed envelopes pass through byte for byte.
import { expectAnswer, expectRefusal, fieldOf } from "../../frame/expect.ts";
import { absent } from "../../frame/pattern.ts";
import { type Scenario, scenario } from "../../frame/scenario.ts";
import { fingerprintOf, readVectors } from "../../vectors.ts";
import { accept, type BrokerWorld, toMember, toQueue, toTopic } from "./world.ts";

type Sealed = { readonly sealed: string };
type SealingVectors = { readonly cases: readonly Sealed[]; readonly version_3: { readonly cases: readonly Sealed[] } };

export const sealingScenarios: readonly Scenario<BrokerWorld>[] = [
  scenario(
    "1.8",
    "bytes",
    "a sealed body comes back byte-equal, as base64, with its envelope version",
    async (world) => {
      const { cases, version_3 } = readVectors<SealingVectors>("sealing");
      const all = [
        ...cases.map((each) => ["2", each] as const),
        ...version_3.cases.map((each) => ["3", each] as const),
      ];
      for (const [version, { sealed }] of all) {
        const base64 = Buffer.from(sealed, "hex").toString("base64");
        const fields = {
          client_message_id: world.fresh("seal"),
          destination: toMember(world.bob),
          envelope_version: version,
        };
        const sent = await accept(world.alice, { ...fields, body_base64: base64 });
        const page = await world.bob.call("GET", `/history?after=${Number(fieldOf(sent, "history_id")) - 1}&limit=1`);
        expectAnswer(page, 200, { items: [{ envelope_version: version, body_base64: base64, body: absent }] });
      }
    },
  ),
  scenario("1.8", "version-counts", "the wire fingerprint of a sealed envelope uses its version", async (world) => {
    const fields = { client_message_id: world.fresh("seal"), destination: toMember(world.bob), body_base64: "AAAA" };
    const sealed = { ...fields, envelope_version: "3" };
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
      };
      for (const envelope_version of ["2", "3"]) {
        expectRefusal(await world.alice.call("POST", "/messages", { ...fields, envelope_version }), 400);
      }
    }
  }),
  scenario("1.8", "meta-inside", "a message of version 3 has no meta beside its box", async (world) => {
    const fields = { client_message_id: world.fresh("seal"), destination: toMember(world.bob), body_base64: "AAAA" };
    const sealed = { ...fields, envelope_version: "3" };
    for (const meta of [{}, { a: 1 }]) {
      expectRefusal(await world.alice.call("POST", "/messages", { ...sealed, meta }), 400, "invalid_request");
    }
    await accept(world.alice, sealed);
  }),
];

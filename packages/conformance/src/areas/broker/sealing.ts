// 1.8 at the broker: sealed envelopes pass through byte for byte.
import { expectAnswer, expectEqual, expectRefusal, fieldOf, itemsOf } from "../../frame/expect.ts";
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
  scenario(
    "6.1",
    "sealed-by-default",
    "a direct message that is not sealed is 422 and consumes nothing",
    async (world) => {
      const owner = await world.createPlainMesh(world.fresh("sealed"), "olga");
      const plain = { client_message_id: world.fresh("plain"), destination: toMember(owner), body: "x" };
      expectRefusal(await owner.call("POST", "/messages", plain), 422, "dm_not_sealed");
      const peer = await owner.connect("client");
      expectRefusal(await peer.request("send", plain), 422, "dm_not_sealed");
      const fate = `/messages/by-client-id/${plain.client_message_id}?fingerprint=${fingerprintOf(plain)}`;
      expectAnswer(await owner.call("GET", fate), 200, { fate: "none" });
      await accept(owner, { ...plain, envelope_version: "2" });
    },
  ),
  scenario("6.1", "policy-after-b0", "what was accepted stays so when the mesh asks for seals again", async (world) => {
    const owner = await world.createMesh(world.fresh("any"), "olga");
    const plain = { client_message_id: world.fresh("plain"), destination: toMember(owner), body: "x" };
    await accept(owner, plain);
    expectAnswer(await owner.call("PUT", "/settings", { key: "dm_policy", value: null }), 200, { value: "sealed" });
    expectAnswer(await owner.call("POST", "/messages", plain), 200, { duplicate: true });
    const other = { ...plain, client_message_id: world.fresh("plain") };
    expectRefusal(await owner.call("POST", "/messages", other), 422, "dm_not_sealed");
  }),
  scenario("8.7", "settings", "every member reads the mesh's settings, an owner alone changes them", async (world) => {
    const change = { key: "max_topics", value: 9_000 };
    expectRefusal(await world.alice.call("PUT", "/settings", change), 403, "forbidden");
    expectRefusal(await world.owner.call("PUT", "/settings", { key: "colour", value: 1 }), 400, "invalid_request");
    expectRefusal(await world.owner.call("PUT", "/settings", { ...change, value: -1 }), 400, "invalid_request");
    expectAnswer(await world.owner.call("PUT", "/settings", change), 200, change);
    const read = expectAnswer(await world.alice.call("GET", "/settings"), 200);
    const setting = itemsOf(read).find(({ key }) => key === "max_topics");
    expectEqual(setting?.value, 9_000, "value of max_topics", read.request);
    expectAnswer(await world.owner.call("PUT", "/settings", { ...change, value: null }), 200);
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

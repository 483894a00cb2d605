// 1.1 at the broker: which requests are valid, and what their fingerprint is, as far as fate and conflicts show it.
import { expectAnswer, expectRefusal } from "../../frame/expect.ts";
import { type Scenario, scenario } from "../../frame/scenario.ts";
import { type FingerprintCase, fingerprintOf, readVectors, writeWithMeta } from "../../vectors.ts";
import { edgeScenarios } from "../edges.ts";
import { accept, type BrokerWorld, toMember } from "./world.ts";

type IdVectors = { readonly valid: readonly string[]; readonly invalid: readonly string[] };
type AddressVectors = {
  readonly not_names: readonly string[];
  readonly destinations: readonly { readonly destination: object; readonly valid: boolean }[];
};

const idCharactersMax = 128;

async function expectFate(world: BrokerWorld, id: string, fingerprint: string, fate: string): Promise<void> {
  const path = `/messages/by-client-id/${encodeURIComponent(id)}?fingerprint=${fingerprint}`;
  expectAnswer(await world.alice.call("GET", path), 200, { fate });
}

const fieldsOf = (world: BrokerWorld, id: string) => ({
  client_message_id: id,
  destination: toMember(world.bob),
  body: "x",
});

const edges = edgeScenarios<BrokerWorld>({
  fresh: (world, what) => world.fresh(what),
  post: (world, raw) => world.alice.callRaw("POST", "/messages", raw),
  fields: fieldsOf,
  textField: "body",
  expectAccepted: (answer) => expectAnswer(answer, 201, { duplicate: false }),
  expectDuplicate: (answer) => expectAnswer(answer, 200, { duplicate: true }),
});

const own: readonly Scenario<BrokerWorld>[] = [
  scenario("1.1", "valid-ids", "an id is 1–128 printable ASCII characters without spaces", async (world) => {
    for (const id of readVectors<IdVectors>("client-message-ids").valid) {
      const suffix = world.fresh("i");
      const longest = id.slice(0, idCharactersMax - suffix.length) + suffix;
      await accept(world.alice, { client_message_id: longest, destination: toMember(world.bob), body: "x" });
      await expectFate(world, world.fresh(id.slice(0, 90)), "0".repeat(64), "none");
    }
  }),
  scenario("1.1", "invalid-ids", "every other id is refused, and nothing is trimmed", async (world) => {
    for (const id of readVectors<IdVectors>("client-message-ids").invalid) {
      const answer = await world.alice.call("POST", "/messages", fieldsOf(world, id));
      expectRefusal(answer, 400, "invalid_client_message_id");
    }
  }),
  scenario("1.1", "id-case", "ids that differ in case alone are two ids", async (world) => {
    const id = world.fresh("case");
    await accept(world.alice, { client_message_id: id, destination: toMember(world.bob), body: "1" });
    await accept(world.alice, { client_message_id: id.toUpperCase(), destination: toMember(world.bob), body: "2" });
  }),
  scenario("1.1", "fingerprints", "the wire fingerprint is that of the published vectors", async (world) => {
    for (const { request, fingerprint } of readVectors<{ cases: FingerprintCase[] }>("fingerprints").cases) {
      const { destination, meta_json: metaJson, ...rest } = request;
      const isDm = destination.kind === "dm";
      if (destination.kind === "topic") {
        expectAnswer(await world.alice.call("POST", "/topics", { name: destination.ref }), [200, 201, 409]);
      }
      if (destination.kind === "queue") {
        expectAnswer(await world.alice.call("POST", "/queues", { id: destination.ref }), [200, 201, 409]);
      }
      const id = world.fresh("print");
      // No member here has a key of the vectors, so direct messages go to a member, and are hashed again.
      const fields = { ...rest, client_message_id: id, destination: isDm ? toMember(world.bob) : destination };
      expectAnswer(await world.alice.callRaw("POST", "/messages", writeWithMeta(fields, metaJson)), 201);
      const meta = metaJson === undefined ? {} : { meta: JSON.parse(metaJson) as object };
      await expectFate(world, id, isDm ? fingerprintOf({ ...fields, ...meta }) : fingerprint, "committed");
      await expectFate(world, id, "f".repeat(64), "taken");
    }
  }),
  scenario(
    "1.1",
    "names",
    "names begin with a letter or digit and have 1–64 letters, digits and . _ -",
    async (world) => {
      const { not_names: notNames, destinations } = readVectors<AddressVectors>("addresses");
      for (const name of notNames) expectRefusal(await world.alice.call("POST", "/topics", { name }), 400);
      for (const id of notNames) expectRefusal(await world.alice.call("POST", "/queues", { id }), 400);
      for (const { destination, valid } of destinations) {
        if (valid) continue;
        const answer = await world.alice.call("POST", "/messages", {
          ...fieldsOf(world, world.fresh("to")),
          destination,
        });
        expectRefusal(answer, 400);
      }
    },
  ),
  scenario("1.1", "destination", "a destination has a known kind, a ref and nothing else", async (world) => {
    const wrong = [{ kind: "host", ref: "x" }, { kind: "topic" }, { ...toMember(world.bob), colour: 1 }, "#x", null];
    for (const destination of wrong) {
      const answer = await world.alice.call("POST", "/messages", {
        ...fieldsOf(world, world.fresh("to")),
        destination,
      });
      expectRefusal(answer, 400);
    }
    for (const version of ["4", 1, null]) {
      const fields = { ...fieldsOf(world, world.fresh("version")), envelope_version: version };
      expectRefusal(await world.alice.call("POST", "/messages", fields), 400);
    }
  }),
];

export const identityScenarios: readonly Scenario<BrokerWorld>[] = [...own, ...edges];

// 1.1 at the broker: which requests are sound, and what their fingerprint is, as far as fate and conflicts show it.
import { expectAnswer, expectRefusal } from "../../frame/expect.ts";
import { type Scenario, scenario } from "../../frame/scenario.ts";
import { type FingerprintCase, fingerprintOf, type JsonVectors, readVectors, writeWithMeta } from "../../vectors.ts";
import { accept, type BrokerWorld, strangersKey, toMember, toTopic } from "./world.ts";

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

/** A raw request to /messages that must be refused, and its id stays free. */
async function expectRefused(
  world: BrokerWorld,
  raw: (id: string) => string | Uint8Array,
  error?: string,
): Promise<void> {
  const id = world.fresh("refused");
  expectRefusal(await world.alice.callRaw("POST", "/messages", raw(id)), 400, error);
  await accept(world.alice, { client_message_id: id, destination: toMember(world.bob), body: "free" });
}

const fieldsOf = (world: BrokerWorld, id: string) => ({
  client_message_id: id,
  destination: toMember(world.bob),
  body: "x",
});

const ids: readonly Scenario<BrokerWorld>[] = [
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
];

const fingerprints: readonly Scenario<BrokerWorld>[] = [
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
      // A key of the vectors is nobody's here, so that direct messages go to a member, and are hashed anew.
      const fields = { ...rest, client_message_id: id, destination: isDm ? toMember(world.bob) : destination };
      const text = writeWithMeta(fields, metaJson);
      expectAnswer(await world.alice.callRaw("POST", "/messages", text), 201);
      const meta = metaJson === undefined ? {} : { meta: JSON.parse(metaJson) as object };
      await expectFate(world, id, isDm ? fingerprintOf({ ...fields, ...meta }) : fingerprint, "committed");
      await expectFate(world, id, "f".repeat(64), "taken");
    }
  }),
  scenario("1.1", "canonical-meta", "meta counts in its RFC 8785 form, however it is spelled", async (world) => {
    for (const { text, canonical } of readVectors<JsonVectors>("json").accept) {
      if (text === undefined || canonical.includes("\\u0000")) continue;
      const id = world.fresh("meta");
      const fields = fieldsOf(world, id);
      expectAnswer(await world.alice.callRaw("POST", "/messages", writeWithMeta(fields, `{"v":${text}}`)), 201);
      const again = await world.alice.callRaw(
        "POST",
        "/messages",
        writeWithMeta(fields, ` {"v":${markDoubles(canonical)}} `),
      );
      expectAnswer(again, 200, { duplicate: true });
    }
  }),
  scenario("1.1", "proto-counts", "`__proto__` in meta is an ordinary key and counts", async (world) => {
    const fields = fieldsOf(world, world.fresh("proto"));
    expectAnswer(
      await world.alice.callRaw("POST", "/messages", writeWithMeta(fields, '{"a":1,"__proto__":{"b":1}}')),
      201,
    );
    const without = await world.alice.callRaw("POST", "/messages", writeWithMeta(fields, '{"a":1}'));
    expectRefusal(without, 409, "idempotency_key_reused", { conflict: "request_fingerprint_mismatch" });
  }),
  scenario(
    "1.1",
    "defaults-count-as-written",
    "priority next, envelope 1 and meta {} are what absence means",
    async (world) => {
      const fields = fieldsOf(world, world.fresh("defaults"));
      await accept(world.alice, fields);
      const written = { ...fields, priority: "next", envelope_version: "1", meta: {} };
      expectAnswer(await world.alice.call("POST", "/messages", written), 200, { duplicate: true });
      expectRefusal(await world.alice.call("POST", "/messages", { ...fields, priority: "now" }), 409);
      expectRefusal(await world.alice.call("POST", "/messages", { ...fields, reply_to_id: "r" }), 409);
    },
  ),
];

/** An integer that only a double holds is written so that it is read as one. */
function markDoubles(canonical: string): string {
  return canonical.replace(/"(?:[^"\\]|\\.)*"|-?[0-9][0-9.eE+-]*/g, (token) => {
    return /^-?[0-9]{16,}$/.test(token) ? `${token}e0` : token;
  });
}

const edges: readonly Scenario<BrokerWorld>[] = [
  scenario(
    "1.1",
    "strict-json",
    "documents that two readers could read differently are refused by their reason",
    async (world) => {
      for (const { text, hex, reason } of readVectors<JsonVectors>("json").refuse) {
        // The vectors have bounds of their own for these two.
        if (reason === "too_deep" || reason === "too_large") continue;
        const raw = hex === undefined ? (text ?? "") : Buffer.from(hex, "hex");
        expectRefusal(await world.alice.callRaw("POST", "/messages", raw), 400, reason);
      }
    },
  ),
  scenario(
    "1.1",
    "duplicate-key",
    "an object that names a key twice is refused and consumes nothing",
    async (world) => {
      await expectRefused(
        world,
        (id) => `{"body":"y",${JSON.stringify(fieldsOf(world, id)).slice(1)}`,
        "duplicate_key",
      );
      await expectRefused(world, (id) => writeWithMeta(fieldsOf(world, id), '{"a":1,"a":1}'), "duplicate_key");
    },
  ),
  scenario("1.1", "invalid-utf8", "bytes that are not UTF-8 are refused", async (world) => {
    await expectRefused(
      world,
      (id) => Buffer.from(writeWithMeta(fieldsOf(world, id), '{"a":"\u00ff"}'), "latin1"),
      "invalid_utf8",
    );
  }),
  scenario("1.1", "lone-surrogates", "half a surrogate pair is refused in the body and in meta", async (world) => {
    await expectRefused(world, (id) => writeWithMeta(fieldsOf(world, id), '{"a":"\\ud800"}'), "lone_surrogate");
    await expectRefused(
      world,
      (id) => JSON.stringify(fieldsOf(world, id)).replace('"x"', '"\\udc00"'),
      "lone_surrogate",
    );
  }),
  scenario(
    "1.1",
    "numbers",
    "integers beyond 2^53 − 1 and numbers that overflow are refused; doubles are not",
    async (world) => {
      for (const number of ["9007199254740992", "-9007199254740992", "1e400"]) {
        await expectRefused(
          world,
          (id) => writeWithMeta(fieldsOf(world, id), `{"n":${number}}`),
          "number_out_of_range",
        );
      }
      const doubles = writeWithMeta(fieldsOf(world, world.fresh("double")), '{"n":[9007199254740993.0,1e300]}');
      expectAnswer(await world.alice.callRaw("POST", "/messages", doubles), 201);
    },
  ),
  scenario("1.1", "nul", "0x00 is refused in every field but the body", async (world) => {
    for (const meta of ['{"a":"\\u0000"}', '{"\\u0000":1}', '{"a":[{"b":"x\\u0000"}]}']) {
      await expectRefused(world, (id) => writeWithMeta(fieldsOf(world, id), meta), "nul_in_field");
    }
    await expectRefused(world, (id) => JSON.stringify({ ...fieldsOf(world, id), reply_to_id: "a\0" }), "nul_in_field");
    await accept(world.alice, { ...fieldsOf(world, world.fresh("nul")), body: "a\0b" });
  }),
  scenario("1.1", "unknown-fields", "a field that the call does not know is refused, inside too", async (world) => {
    await expectRefused(world, (id) => JSON.stringify({ ...fieldsOf(world, id), colour: 1 }), "unknown_field");
    const destination = { ...toMember(world.bob), colour: 1 };
    await expectRefused(world, (id) => JSON.stringify({ ...fieldsOf(world, id), destination }), "unknown_field");
    await expectRefused(world, (id) => writeRaw(fieldsOf(world, id), '"__proto__":{}'), "unknown_field");
  }),
  scenario("1.1", "one-body", "exactly one of body and body_base64, and that in canonical base64", async (world) => {
    await expectRefused(world, (id) => JSON.stringify({ ...fieldsOf(world, id), body_base64: "eA==" }));
    const { bob } = world;
    const none = (id: string) => ({ client_message_id: id, destination: toMember(bob) });
    await expectRefused(world, (id) => JSON.stringify(none(id)));
    for (const base64 of ["eA", "eB==", "e A=", "eA==\n", "_w=="]) {
      await expectRefused(world, (id) => JSON.stringify({ ...none(id), body_base64: base64 }));
    }
  }),
  scenario("1.1", "values", "a wrong priority, version, destination or list of mentions is refused", async (world) => {
    const wrong: readonly object[] = [
      { priority: "urgent" },
      { priority: null },
      { envelope_version: "3" },
      { envelope_version: 1 },
      { destination: { kind: "host", ref: "x" } },
      { destination: { kind: "topic" } },
      { meta: [] },
      { meta: { mentions: "bob" } },
      { reply_to_id: "has space" },
      { body: 1 },
    ];
    for (const each of wrong) await expectRefused(world, (id) => JSON.stringify({ ...fieldsOf(world, id), ...each }));
    const keys = [strangersKey(), strangersKey()].sort();
    for (const mentions of [[...keys].reverse(), [keys[0], keys[0]], [keys[0]?.toUpperCase()]]) {
      await expectRefused(
        world,
        (id) => JSON.stringify({ ...fieldsOf(world, id), meta: { mentions } }),
        "invalid_mentions",
      );
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
        await expectRefused(world, (id) => JSON.stringify({ ...fieldsOf(world, id), destination }));
      }
      await accept(world.alice, {
        client_message_id: world.fresh("n"),
        destination: toTopic(await world.topic()),
        body: "",
      });
    },
  ),
];

/** JSON.stringify drops what JavaScript takes for a prototype. */
function writeRaw(fields: object, member: string): string {
  return `${JSON.stringify(fields).slice(0, -1)},${member}}`;
}

export const identityScenarios: readonly Scenario<BrokerWorld>[] = [...ids, ...fingerprints, ...edges];

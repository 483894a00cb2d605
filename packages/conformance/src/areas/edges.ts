// 1.1 as both layers keep it: what is refused at the boundary because two different requests could otherwise have the
// same hash, and which fields the fingerprint covers. Broker and daemon name their fields differently; the rules are
// the same.
import { type Answer, expectRefusal } from "../frame/expect.ts";
import { type Scenario, scenario } from "../frame/scenario.ts";
import { type JsonVectors, readVectors, writeWithMeta } from "../vectors.ts";

export type EdgePorts<World> = {
  readonly fresh: (world: World, what: string) => string;
  /** Sends exactly this text or these bytes to the call that accepts messages. */
  readonly post: (world: World, raw: string | Uint8Array) => Promise<Answer>;
  /** A valid request; its `textField` is "x". */
  readonly fields: (world: World, id: string) => Readonly<Record<string, unknown>>;
  readonly textField: "body" | "message";
  readonly expectAccepted: (answer: Answer) => void;
  readonly expectDuplicate: (answer: Answer) => void;
};

const aKey = (digit: string) => digit.repeat(64);

export function edgeScenarios<World>(ports: EdgePorts<World>): readonly Scenario<World>[] {
  const { post, fields, fresh, textField } = ports;

  /** Expects a refusal after which the id is still free. */
  const expectRefused = async (world: World, raw: (id: string) => string | Uint8Array, error?: string) => {
    const id = fresh(world, "refused");
    expectRefusal(await post(world, raw(id)), 400, error);
    ports.expectAccepted(await post(world, JSON.stringify(fields(world, id))));
  };
  const withMeta = (world: World, meta: string) => (id: string) => writeWithMeta(fields(world, id), meta);
  const changed = (world: World, change: object) => (id: string) => JSON.stringify({ ...fields(world, id), ...change });

  return [...strictness(ports, { expectRefused, withMeta, changed }), ...counting(ports), values()];

  function values(): Scenario<World> {
    const says = "a wrong priority, reference, meta or list of mentions is refused, and exactly one body is needed";
    return scenario("1.1", "values", says, async (world) => {
      const wrong = [
        { priority: "urgent" },
        { priority: null },
        { meta: [] },
        { reply_to_id: "has space" },
        { [textField]: 1 },
      ];
      for (const each of wrong) await expectRefused(world, changed(world, each));
      for (const mentions of ["bob", [aKey("b"), aKey("a")], [aKey("a"), aKey("a")], [aKey("A")]]) {
        await expectRefused(world, changed(world, { meta: { mentions } }), "invalid_mentions");
      }
      await expectRefused(world, changed(world, { [`${textField}_base64`]: "eA==" }));
      await expectRefused(world, changed(world, { [textField]: undefined }));
      for (const base64 of ["eA", "eB==", "e A=", "eA==\n", "_w=="]) {
        await expectRefused(world, changed(world, { [textField]: undefined, [`${textField}_base64`]: base64 }));
      }
    });
  }
}

type Refusals<World> = {
  readonly expectRefused: (world: World, raw: (id: string) => string | Uint8Array, error?: string) => Promise<void>;
  readonly withMeta: (world: World, meta: string) => (id: string) => string;
  readonly changed: (world: World, change: object) => (id: string) => string;
};

function strictness<World>(ports: EdgePorts<World>, refusals: Refusals<World>): readonly Scenario<World>[] {
  const { post, fields, fresh, textField } = ports;
  const { expectRefused, withMeta, changed } = refusals;
  const text = (world: World, id: string) => JSON.stringify(fields(world, id));
  return [
    scenario(
      "1.1",
      "strict-json",
      "documents that two readers could read differently are refused by their reason",
      async (world) => {
        for (const { text: document, hex, reason } of readVectors<JsonVectors>("json").refuse) {
          // The vectors have their own bounds for these two.
          if (reason === "too_deep" || reason === "too_large") continue;
          const raw = hex === undefined ? (document ?? "") : Buffer.from(hex, "hex");
          expectRefusal(await post(world, raw), 400, reason);
        }
      },
    ),
    scenario(
      "1.1",
      "duplicate-key",
      "an object that names a key twice is refused and consumes nothing",
      async (world) => {
        await expectRefused(world, (id) => `{"${textField}":"y",${text(world, id).slice(1)}`, "duplicate_key");
        await expectRefused(world, withMeta(world, '{"a":1,"a":1}'), "duplicate_key");
      },
    ),
    scenario("1.1", "invalid-utf8", "bytes that are not UTF-8 are refused", async (world) => {
      const latin1 = (id: string) => Buffer.from(withMeta(world, '{"a":"\u00ff"}')(id), "latin1");
      await expectRefused(world, latin1, "invalid_utf8");
    }),
    scenario("1.1", "lone-surrogates", "half a surrogate pair is refused in the body and in meta", async (world) => {
      await expectRefused(world, withMeta(world, '{"a":"\\ud800"}'), "lone_surrogate");
      await expectRefused(world, (id) => text(world, id).replace('"x"', '"\\udc00"'), "lone_surrogate");
    }),
    scenario(
      "1.1",
      "numbers",
      "integers beyond 2^53 − 1 and numbers that overflow are refused; doubles are not",
      async (world) => {
        for (const number of ["9007199254740992", "-9007199254740992", "1e400"]) {
          await expectRefused(world, withMeta(world, `{"n":${number}}`), "number_out_of_range");
        }
        const doubles = withMeta(world, '{"n":[9007199254740993.0,1e300]}')(fresh(world, "double"));
        ports.expectAccepted(await post(world, doubles));
      },
    ),
    scenario("1.1", "nul", "0x00 is refused in every field but the body", async (world) => {
      for (const meta of ['{"a":"\\u0000"}', '{"\\u0000":1}', '{"a":[{"b":"x\\u0000"}]}']) {
        await expectRefused(world, withMeta(world, meta), "nul_in_field");
      }
      await expectRefused(world, changed(world, { reply_to_id: "a\0" }), "nul_in_field");
      ports.expectAccepted(await post(world, changed(world, { [textField]: "a\0b" })(fresh(world, "nul"))));
    }),
    scenario("1.1", "unknown-fields", "a field that the call does not know is refused", async (world) => {
      await expectRefused(world, changed(world, { colour: 1 }), "unknown_field");
      await expectRefused(world, (id) => `${text(world, id).slice(0, -1)},"__proto__":{}}`, "unknown_field");
    }),
  ];
}

function counting<World>({
  post,
  fields,
  fresh,
  expectAccepted,
  expectDuplicate,
}: EdgePorts<World>): readonly Scenario<World>[] {
  return [
    scenario("1.1", "canonical-meta", "meta counts in its RFC 8785 form, however it is spelled", async (world) => {
      for (const { text, canonical } of readVectors<JsonVectors>("json").accept) {
        if (text === undefined || canonical.includes("\\u0000")) continue;
        const request = fields(world, fresh(world, "meta"));
        expectAccepted(await post(world, writeWithMeta(request, `{"v":${text}}`)));
        expectDuplicate(await post(world, writeWithMeta(request, ` {"v":${markDoubles(canonical)}} `)));
      }
    }),
    scenario("1.1", "proto-counts", "`__proto__` in meta is an ordinary key and counts", async (world) => {
      const request = fields(world, fresh(world, "proto"));
      expectAccepted(await post(world, writeWithMeta(request, '{"a":1,"__proto__":{"b":1}}')));
      expectRefusal(await post(world, writeWithMeta(request, '{"a":1}')), 409, "idempotency_key_reused");
    }),
    scenario(
      "1.1",
      "defaults",
      "priority next and meta {} are what absence means; anything else counts",
      async (world) => {
        const request = fields(world, fresh(world, "defaults"));
        expectAccepted(await post(world, JSON.stringify(request)));
        expectDuplicate(await post(world, JSON.stringify({ ...request, priority: "next", meta: {} })));
        for (const other of [{ priority: "now" }, { reply_to_id: "r" }, { meta: { a: 1 } }]) {
          expectRefusal(await post(world, JSON.stringify({ ...request, ...other })), 409, "idempotency_key_reused");
        }
      },
    ),
  ];
}

/** An integer that only a double can hold is written so that it is read as a double. */
function markDoubles(canonical: string): string {
  return canonical.replace(/"(?:[^"\\]|\\.)*"|-?[0-9][0-9.eE+-]*/g, (token) => {
    return /^-?[0-9]{16,}$/.test(token) ? `${token}e0` : token;
  });
}

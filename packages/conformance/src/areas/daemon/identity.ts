// 1.1 and 1.2 at the daemon: the id of a send, its fingerprint, and what a refusal consumes.
import { expectAnswer, expectEqual, expectRefusal, fieldOf } from "../../frame/expect.ts";
import { aPrefix, aUlid } from "../../frame/pattern.ts";
import { type Scenario, scenario } from "../../frame/scenario.ts";
import { type FingerprintCase, fingerprintOf, readVectors, writeWithMeta } from "../../vectors.ts";
import { edgeScenarios } from "../edges.ts";
import type { DaemonWorld } from "./world.ts";

type IdVectors = {
  readonly valid: readonly string[];
  readonly invalid: readonly string[];
  readonly headers: readonly { readonly header: string; readonly id: string | null }[];
  readonly choices: readonly {
    readonly header: string | null;
    readonly body: string | null;
    readonly id?: string | null;
    readonly error?: string;
  }[];
};

/** An earlier run may have used an id of the vectors: then it is answered from its row. */
const anyRun = [200, 202, 409];

/** HTTP itself would trim or not carry the other headers, so they cannot be tried. */
const canTravel = (header: string) => /^[\x20-\x7e\x80-\xff]*$/.test(header) && header === header.trim();

const post = (world: DaemonWorld, raw: string | Uint8Array) => world.ask({ method: "POST", path: "/v1/send", raw });

function withKey(world: DaemonWorld, header: string | null, body: string | null) {
  const headers = header === null ? {} : { "idempotency-key": header };
  const id = body === null ? {} : { client_message_id: body };
  return world.ask({ method: "POST", path: "/v1/send", headers, json: { to: "@self", message: "vector", ...id } });
}

const ids: readonly Scenario<DaemonWorld>[] = [
  scenario(
    "1.1",
    "valid-ids",
    "an id is 1–128 printable ASCII characters without spaces, kept as it is",
    async (world) => {
      for (const id of readVectors<IdVectors>("client-message-ids").valid) {
        expectAnswer(await withKey(world, null, id), anyRun, { client_message_id: id });
      }
    },
  ),
  scenario("1.1", "invalid-ids", "every other id is refused, and nothing is trimmed", async (world) => {
    for (const id of readVectors<IdVectors>("client-message-ids").invalid) {
      expectRefusal(await withKey(world, null, id), 400, "invalid_client_message_id");
    }
  }),
  scenario(
    "1.1",
    "idempotency-key",
    "Idempotency-Key carries the id bare, or as a quoted structured string",
    async (world) => {
      for (const { header, id } of readVectors<IdVectors>("client-message-ids").headers) {
        if (!canTravel(header)) continue;
        const answer = await withKey(world, header, null);
        if (id === null) expectRefusal(answer, 400, "invalid_client_message_id");
        else expectAnswer(answer, anyRun, { client_message_id: id });
      }
    },
  ),
  scenario("1.1", "header-and-body", "header and body may both name the id, if they agree", async (world) => {
    for (const { header, body, id, error } of readVectors<IdVectors>("client-message-ids").choices) {
      if (header !== null && !canTravel(header)) continue;
      const answer = await withKey(world, header, body);
      if (error !== undefined) expectRefusal(answer, 400, error);
      else expectAnswer(answer, anyRun, { client_message_id: id ?? aUlid });
    }
  }),
  scenario("1.1", "fresh-id", "a send without an id gets a fresh ULID", async (world) => {
    const send = { to: "@self", message: "x" };
    const answers = [await world.send(send), await world.send(send)];
    for (const answer of answers) expectAnswer(answer, 202, { client_message_id: aUlid, duplicate: false });
    const different = new Set(answers.map((answer) => fieldOf(answer, "client_message_id"))).size;
    expectEqual(different, 2, "different ids", answers[1]?.request ?? "");
  }),
];

const addressOf = ({ kind, ref }: { readonly kind: string; readonly ref: string }) => `${kind}:${ref}`;

const fingerprints: readonly Scenario<DaemonWorld>[] = [
  scenario(
    "1.1",
    "fingerprints",
    "a request's fingerprint shows 16 characters of the published vectors",
    async (world) => {
      // An id that has a row is answered from it before its destination is checked, which need not exist.
      const { id } = await world.doneRow();
      for (const { request, prefix } of readVectors<{ cases: FingerprintCase[] }>("fingerprints").cases) {
        const {
          destination,
          meta_json: metaJson,
          envelope_version: version,
          body,
          body_base64: base64,
          ...rest
        } = request;
        // A request is always version 1; what leaves the host sealed is another envelope.
        if (version === "2" || version === "3") continue;
        const content = body === undefined ? { message_base64: base64 } : { message: body };
        const fields = { ...rest, ...content, to: addressOf(destination), client_message_id: id };
        const answer = await post(world, writeWithMeta(fields, metaJson));
        expectRefusal(answer, 409, "idempotency_key_reused", { daemon_fingerprint_prefix: prefix });
      }
    },
  ),
  scenario(
    "1.1",
    "self-is-a-key",
    "the fingerprint of a direct message is over the recipient's key, however it is addressed",
    async (world) => {
      const key = await world.ownKey();
      const wire = { client_message_id: "x", destination: { kind: "dm", ref: key }, body: "hello" };
      const request_fingerprint = fingerprintOf(wire).slice(0, 16);
      const id = world.fresh("self");
      const send = { message: "hello", client_message_id: id };
      expectAnswer(await world.send({ ...send, to: "@self" }), 202, { request_fingerprint });
      expectAnswer(await world.send({ ...send, to: `dm:${key}` }), [200, 202], {
        duplicate: true,
        request_fingerprint,
      });
    },
  ),
];

const edges = edgeScenarios<DaemonWorld>({
  fresh: (world, what) => world.fresh(what),
  post,
  fields: (_world, id) => ({ client_message_id: id, to: "@self", message: "x" }),
  textField: "message",
  expectAccepted: (answer) => expectAnswer(answer, 202, { duplicate: false, request_fingerprint: aPrefix }),
  expectDuplicate: (answer) => expectAnswer(answer, [200, 202], { duplicate: true }),
});

const layers: readonly Scenario<DaemonWorld>[] = [
  scenario("1.2", "refusal-consumes-nothing", "a refused send leaves its id free at the daemon", async (world) => {
    const id = world.fresh("free");
    expectRefusal(await world.send({ to: "nowhere", message: "x", client_message_id: id }), 400, "invalid_address");
    expectRefusal(
      await world.send({ to: "@self", message: "x", client_message_id: id, colour: 1 }),
      400,
      "unknown_field",
    );
    expectRefusal(
      await world.send({ to: "@self", message: "x".repeat(900_000), client_message_id: id }),
      413,
      "payload_too_large",
    );
    expectRefusal(await world.get(`/v1/outbox/${id}`), 404, "not_found");
    expectAnswer(await world.send({ to: "@self", message: "y", client_message_id: id }), 202, { duplicate: false });
  }),
  scenario("1.2", "nothing-frees-an-id", "an id whose row is dead stays consumed", async (world) => {
    const { id, to, message } = await world.deadRow();
    expectRefusal(await world.send({ to, message, client_message_id: id }), 409, "idempotency_key_reused");
    expectRefusal(
      await world.send({ to: "@self", message: "other", client_message_id: id }),
      409,
      "idempotency_key_reused",
    );
    await world.untilRow(id, { status: "dead", client_message_id: id });
  }),
];

export const identityScenarios: readonly Scenario<DaemonWorld>[] = [...ids, ...fingerprints, ...edges, ...layers];

// U+0000, which PostgreSQL cannot hold: wherever a caller puts it, the answer is a refusal of the request or an answer to
// it, on both stores, and never that of a store in trouble.
import { join } from "node:path";
import { createSchemaCompiler } from "@claudemesh/http/validation";
import { type OperationName, type OperationSpec, operations } from "@claudemesh/protocol/wire/operations";
import { afterAll, describe, expect, test } from "vitest";
import {
  callBroker,
  createTestMesh,
  makeTemporaryFolder,
  readAdminToken,
  startTestBroker,
  type TestMember,
} from "../../../../tests/support/broker-harness.ts";
import { createTestDatabase, findRedis } from "../../../../tests/support/services.ts";

type Schema = {
  readonly type?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly minItems?: number;
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
};
type Path = readonly (string | number)[];

const texts = ["task:1", "plan", "a".repeat(64), "a".repeat(128), "a".repeat(36), "x".repeat(20), ""];

/** A value that the schema takes, with every field that it knows. */
function sampleOf(schema: Schema): unknown {
  const choice = schema.anyOf?.[0] ?? schema.oneOf?.[0];
  if (choice !== undefined) return sampleOf({ ...schema, anyOf: undefined, oneOf: undefined, ...choice } as Schema);
  if (schema.const !== undefined) return schema.const;
  if (schema.enum !== undefined) return schema.enum[0];
  switch (schema.type) {
    case "string":
      return texts.find(
        (text) =>
          text.length >= (schema.minLength ?? 0) &&
          text.length <= (schema.maxLength ?? Number.MAX_SAFE_INTEGER) &&
          new RegExp(schema.pattern ?? "", "u").test(text),
      );
    case "integer":
    case "number":
      return schema.minimum ?? 1;
    case "boolean":
      return true;
    case "array":
      return Array.from({ length: Math.max(1, schema.minItems ?? 1) }, () => sampleOf(schema.items ?? {}));
    case "object":
      return Object.fromEntries(Object.entries(schema.properties ?? {}).map(([name, at]) => [name, sampleOf(at)]));
    default:
      return "text";
  }
}

/** Where the value holds text that is not one of a few words. */
function textsIn(value: unknown, at: Path = []): Path[] {
  if (typeof value === "string") return [at];
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, member]) => textsIn(member, [...at, key]));
}

function replaceAt(value: unknown, [key, ...rest]: Path, change: (text: string) => string): unknown {
  if (key === undefined) return change(value as string);
  const copy = Array.isArray(value) ? [...value] : { ...(value as object) };
  (copy as Record<string | number, unknown>)[key] = replaceAt(
    (copy as Record<string | number, unknown>)[key],
    rest,
    change,
  );
  return copy;
}

const withNul = (text: string) => `${text.slice(0, -1)}\0`;

/** The same as a request over HTTP, if the operation has a route. */
async function overHttp(member: TestMember, { http }: OperationSpec, input: Readonly<Record<string, unknown>>) {
  if (http === undefined) return undefined;
  const rest: Record<string, unknown> = { ...input };
  const path = http.path.replaceAll(/:([A-Za-z_]+)/g, (_, field: string) => {
    delete rest[field];
    return encodeURIComponent(String(input[field]));
  });
  if (http.method === "GET") {
    const query = new URLSearchParams(
      Object.entries(rest).map(([name, value]): [string, string] => [name, String(value)]),
    );
    return member.call("GET", `${path}?${query}`);
  }
  for (const [inBody, inFrame] of Object.entries(http.names ?? {})) {
    if (!Object.hasOwn(rest, inFrame)) continue;
    rest[inBody] = rest[inFrame];
    delete rest[inFrame];
  }
  return member.call(http.method, path, Object.keys(rest).length === 0 ? undefined : rest);
}

const database = await createTestDatabase("nul");
const redis = database === undefined ? undefined : await findRedis();
afterAll(async () => {
  await database?.drop();
  await redis?.stop();
});

/** These take it as part of a document, a body or a query, where it means what it means in JSON. */
const takes = new Set<string>(["send body", "search q", "once.record result", "once.resolve result"]);

describe.each([
  ["SQLite", true, {}],
  ["PostgreSQL", redis !== undefined, { store: database?.url ?? "", redis: redis?.url ?? "" }],
] as const)("U+0000 on %s", (_, isThere, flags) => {
  test.skipIf(!isThere)("is refused in every text of every operation, over HTTP and as a frame", async () => {
    const folder = makeTemporaryFolder();
    const broker = await startTestBroker({ folder, flags: { "admin-token-file": join(folder, "admin"), ...flags } });
    const alice = await createTestMesh(broker);
    const peer = await alice.connect("client");
    await peer.request("space.create", { name: "plan" });
    const compile = createSchemaCompiler();
    const troubles: string[] = [];
    let tried = 0;
    for (const [name, spec] of Object.entries(operations) as [OperationName, OperationSpec][]) {
      const sample = sampleOf(spec.input as Schema) as Record<string, unknown>;
      for (const path of textsIn(sample)) {
        const input = replaceAt(sample, path, withNul) as Record<string, unknown>;
        const answers = [await overHttp(alice, spec, input), await peer.request(name, input)];
        for (const answer of answers) {
          if (answer === undefined) continue;
          tried += 1;
          const where = `${name} ${path.join(".")}`;
          if (answer.status !== 400 && !takes.has(where)) {
            troubles.push(`${where}: ${answer.status} ${answer.body.error}`);
          }
        }
      }
      const wrong = compile(spec.input)(sample);
      if (wrong !== undefined) troubles.push(`${name}: the sample itself is refused: ${wrong.message}`);
    }
    expect(troubles).toEqual([]);
    expect(tried).toBeGreaterThan(150);
  });

  test.skipIf(!isThere)("is refused in a path and a query, also of who has shown no token", async () => {
    const folder = makeTemporaryFolder();
    const broker = await startTestBroker({ folder, flags: { "admin-token-file": join(folder, "admin"), ...flags } });
    const joining = { secret: "cms_x", name: "eve", pubkey: "a".repeat(64), signature: "b".repeat(128) };
    for (const path of ["/v1/meshes/a%00/join", "/v1/meshes/%00/history", "/v1/meshes/a/history?topic=%00", "/%00"]) {
      const method = path.endsWith("join") ? "POST" : "GET";
      const body = method === "POST" ? joining : undefined;
      expect((await callBroker(broker.url, method, path, { token: "cmt_x", body })).status, path).toBe(400);
    }
    for (const field of Object.keys(joining)) {
      const body = { ...joining, [field]: "a\0" };
      // A secret is only ever hashed, so that one with it is a wrong one like any other.
      const { status } = await callBroker(broker.url, "POST", "/v1/meshes/acme/join", { body });
      expect(status, field).toBe(field === "secret" ? 403 : 400);
    }
    const owner = { name: "alice", pubkey: joining.pubkey };
    const { signature } = joining;
    for (const body of [
      { name: "a\0", owner, signature },
      { name: "acme", owner: { ...owner, name: "a\0" }, signature },
    ]) {
      const token = readAdminToken(broker);
      expect((await callBroker(broker.url, "POST", "/v1/meshes", { token, body })).status).toBe(400);
    }
  });
});

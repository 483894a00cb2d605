// The table of operations as a whole: schemas that refuse what they do not know, paths that match their inputs, and
// frame names that cannot be mistaken for one another.
import { describe, expect, it } from "vitest";
import { acceptRequestSchema } from "../messages/accept-request.ts";
import { limits } from "../messages/limits.ts";
import { connectFrameSchema, helloFrameSchema, proveRequestSchema } from "./frames.ts";
import { createMeshRequestSchema, joinRequestSchema } from "./invite.ts";
import { type OperationSpec, operations } from "./operations.ts";

type Schema = { readonly [key: string]: unknown };

const table: [string, OperationSpec][] = Object.entries(operations);
const onHttp = table.flatMap(([name, { http, input }]) => (http === undefined ? [] : [{ name, http, input }]));
const requests: [string, Schema][] = [
  ...table.map(([name, { input }]): [string, Schema] => [name, input as Schema]),
  ["connect", connectFrameSchema],
  ["hello", helloFrameSchema],
  ["prove", proveRequestSchema],
  ["mesh create", createMeshRequestSchema],
  ["mesh join", joinRequestSchema],
];

const propertiesOf = (schema: Schema) => (schema.properties ?? {}) as Readonly<Record<string, Schema>>;
const requiredOf = (schema: Schema) => (schema.required ?? []) as readonly string[];

/**
 * What has any fields: meta is the sender's own, documents and resolutions are the application's, and an invocation may
 * say more than this version knows. Their checks are where they are read.
 */
const ownFields = [".meta", ".operations[].value", ".resolutions", ".invocation"];
/** Values of any type. */
const anyValue = ["patches[].value"];

/** Every object schema inside, with where it stands. */
function objectSchemas(schema: Schema, at: string): { at: string; schema: Schema }[] {
  const inner = Object.entries(propertiesOf(schema)).flatMap(([name, property]) =>
    objectSchemas(property, `${at}.${name}`),
  );
  const items = schema.items === undefined ? [] : objectSchemas(schema.items as Schema, `${at}[]`);
  return [...(schema.type === "object" ? [{ at, schema }] : []), ...inner, ...items];
}

describe("every request", () => {
  it.each(requests)("%s refuses fields that it does not know, at every depth", (name, schema) => {
    const objects = objectSchemas(schema, name);
    expect(objects[0]?.at).toBe(name);
    for (const { at, schema: object } of objects.filter((one) => !ownFields.some((end) => one.at.endsWith(end)))) {
      expect(object.additionalProperties, at).toBe(false);
    }
  });

  it.each(requests)("%s requires only fields that it has, each once", (name, schema) => {
    for (const { at, schema: object } of objectSchemas(schema, name)) {
      const required = requiredOf(object);
      expect(new Set(required).size, at).toBe(required.length);
      for (const field of required) expect(Object.keys(propertiesOf(object)), at).toContain(field);
    }
  });

  it.each(requests)("%s says of every field which type it has", (name, schema) => {
    for (const { at, schema: object } of objectSchemas(schema, name)) {
      for (const [field, property] of Object.entries(propertiesOf(object))) {
        if (anyValue.some((end) => `${at}.${field}`.endsWith(end))) continue;
        // A result is the caller's own and any JSON; its checks are in once-values.ts.
        if (field === "result") expect(property.type, at).toHaveLength(6);
        // A setting's value depends on its key; its checks are in mesh-settings.ts.
        else if (`${at}.${field}` === "mesh.set.value") expect(property.type).toEqual(["string", "integer", "null"]);
        else expect(["string", "integer", "boolean", "object", "array"], `${at}.${field}`).toContain(property.type);
      }
    }
  });

  it("has only plain JSON in its schema, so that it can be published and hashed", () => {
    for (const [name, schema] of requests) expect(JSON.parse(JSON.stringify(schema)), name).toEqual(schema);
  });
});

describe("an operation on HTTP", () => {
  const parametersOf = (path: string) => [...path.matchAll(/:([A-Za-z_]+)/g)].map(([, name = ""]) => name);

  it.each(onHttp)("$name has each parameter of its path as a required text or number", ({ http, input }) => {
    const parameters = parametersOf(http.path);
    expect(new Set(parameters).size).toBe(parameters.length);
    for (const parameter of parameters) {
      expect(requiredOf(input as Schema)).toContain(parameter);
      expect(["string", "integer"]).toContain(propertiesOf(input as Schema)[parameter]?.type);
    }
  });

  it("has some path with a parameter, so that the rule above was tried", () => {
    expect(onHttp.flatMap(({ http }) => parametersOf(http.path)).length).toBeGreaterThan(3);
  });

  it.each(onHttp)("$name has a path of plain segments", ({ http }) => {
    expect(http.path).toMatch(/^(\/(:[A-Za-z_]+|[a-z-]+))+$/);
  });

  it.each(onHttp.filter(({ http }) => http.method === "GET"))("$name reads a query of single values", ({ input }) => {
    for (const [field, property] of Object.entries(propertiesOf(input as Schema))) {
      expect(["string", "integer", "boolean"], field).toContain(property.type);
    }
  });

  it("shares its method and path with no other", () => {
    const routes = onHttp.map(({ http }) => `${http.method} ${http.path.replaceAll(/:[A-Za-z_]+/g, ":")}`);
    expect(new Set(routes).size).toBe(routes.length);
  });

  it("has a limit per page of 1–1000 wherever it has one", () => {
    const limited = onHttp.flatMap(({ input }) => propertiesOf(input as Schema).limit ?? []);
    expect(limited.length).toBeGreaterThan(1);
    for (const limit of limited) expect(limit).toEqual({ type: "integer", minimum: 1, maximum: limits.pageItems });
  });
});

describe("an operation on the WebSocket", () => {
  it("has a frame name that no other frame has", () => {
    const others = [
      "connect",
      "proof",
      "hello",
      "reply",
      "message",
      "member_revoked",
      "peer_join",
      "peer_leave",
      "sync",
      "session.revoked",
    ];
    const names = [...table.map(([name]) => name), ...others];
    expect(new Set(names).size).toBe(names.length);
    for (const name of names) expect(name).toMatch(/^[a-z]+([._][a-z]+){0,2}$/);
  });

  it.each(table)("%s has no field that would hide the frame's type or id", (_name, { input }) => {
    expect(Object.keys(input.properties)).not.toContain("type");
    expect(Object.keys(input.properties)).not.toContain("id");
  });

  it("sends what the broker reads as one accept", () => {
    expect(operations.send.input).toBe(acceptRequestSchema);
  });
});

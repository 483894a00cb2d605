// The broker's /openapi.json by the rules of Redocly and Spectral, as far as they can be broken here, and against the table of
// operations that the server checks requests by.
import { type OperationSpec, operations } from "@claudemesh/protocol/wire/operations";
import { fastify } from "fastify";
import { describe, expect, it } from "vitest";
import { registerDescription } from "./openapi.ts";

type Described = {
  readonly operationId: string;
  readonly summary: string;
  readonly tags: readonly string[];
  readonly parameters: readonly { readonly name: string; readonly in: string; readonly required: boolean }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: { properties: object } }>> };
  readonly responses: object;
};

const server = fastify();
registerDescription(server);
const api = (await server.inject("/openapi.json")).json();
const all = Object.entries(api.paths as Record<string, Record<string, Described>>).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ name: `${method.toUpperCase()} ${path}`, path, operation })),
);
const specs = Object.values(operations as Record<string, OperationSpec>).filter(({ http }) => http !== undefined);

describe("the broker's /openapi.json", () => {
  it("has every operation that has a path, under a name of its own, in a chapter that is described", () => {
    const expected = specs.map(({ http }) => {
      const path = http?.path.replaceAll(/:(\w+)/g, "{$1}");
      return `${http?.method} /v1/meshes/{mesh}${path}`;
    });
    expect(all.map(({ name }) => name).sort()).toEqual(expected.sort());
    expect(new Set(all.map(({ operation }) => operation.operationId)).size).toBe(all.length);
    const chapters = api.tags.map(({ name }: { name: string }) => name);
    expect(all.filter(({ operation }) => !operation.tags.every((tag) => chapters.includes(tag)))).toEqual([]);
  });

  it("says where it is served, who may ask, and how each operation answers and refuses", () => {
    expect(api).toMatchObject({ openapi: "3.1.0", servers: [{ url: "/" }], security: [{ memberToken: [] }] });
    expect(api.info.license.identifier).toBe("MIT");
    for (const { operation } of all) {
      expect(Object.keys(operation.responses)).toEqual(["2XX", "4XX", "5XX"]);
      expect(operation.summary).toMatch(/^[A-Z].*[^.]$/);
    }
  });

  it.each(all)(
    "names each part of the path of $name, and a body only where the method has one",
    ({ name, ...given }) => {
      const { path, operation } = given;
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, part]) => part);
      expect(operation.parameters.filter((each) => each.in === "path").map((each) => each.name)).toEqual(inPath);
      if (/^(GET|DELETE) /.test(name)) expect(operation.requestBody).toBeUndefined();
      else expect(operation.parameters.some((each) => each.in === "query")).toBe(false);
    },
  );

  it("names the fields of a body as a body does, where a frame has another word", () => {
    const queue = api.paths["/v1/meshes/{mesh}/queues"].post.requestBody.content["application/json"].schema;
    expect(Object.keys(queue.properties)).toEqual(["id", "max_deliveries"]);
    expect(queue.required).toEqual(["id"]);
  });
});

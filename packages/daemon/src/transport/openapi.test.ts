// /openapi.json is a description that tools can work with: the rules by which Redocly and Spectral judge one, as far as they
// can be broken here. Its request side comes from the routes; that the answers are true is tried wherever a test calls a
// daemon (testing/described-answers.ts).
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { describeProblem, expectDescribed } from "../testing/described-answers.ts";
import { chapters, routeAnswers } from "./answers.ts";
import { describeApi } from "./openapi.ts";
import { routes } from "./routes.ts";

type Operation = {
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
  readonly tags: readonly string[];
  readonly responses: Readonly<
    Record<
      string,
      { readonly $ref?: string; readonly content?: Readonly<Record<string, { readonly schema?: object }>> }
    >
  >;
};

// biome-ignore lint/suspicious/noExplicitAny: a document is looked into field by field
const api = describeApi(routes, "1.2.3") as any;
const operations = Object.entries(api.paths as Record<string, Record<string, Operation>>).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ name: `${method.toUpperCase()} ${path}`, operation })),
);
const routeNames = routes.map(({ method, url }) => `${method} ${url}`);

describe("the answers of the routes", () => {
  it.each(routeNames)("%s is described in transport/answers.ts", (name) => {
    const advice = `${name} has no entry in transport/answers.ts: say what it answers, and by which name and chapter`;
    expect(routeAnswers[name], advice).toBeDefined();
  });

  it("are described for routes that exist", () => {
    expect(Object.keys(routeAnswers).filter((name) => !routeNames.includes(name))).toEqual([]);
  });
});

describe("/openapi.json", () => {
  it("says which server it describes, under which licence, and what its chapters are", () => {
    expect(api.servers).toEqual([{ url: "/", description: expect.stringMatching(/\S/) }]);
    expect(api.info).toMatchObject({
      version: "1.2.3",
      license: { identifier: "MIT" },
      contact: { name: expect.any(String) },
    });
    expect(api.tags.map(({ name }: { name: string }) => name)).toEqual(Object.keys(chapters));
  });

  it("gives every operation a name of its own", () => {
    const names = operations.map(({ operation }) => operation.operationId);
    expect(names.length).toBeGreaterThan(25);
    expect(names.filter((name) => !/^[a-z][A-Za-z]*$/.test(name))).toEqual([]);
    expect(new Set(names).size).toBe(names.length);
  });

  it.each(operations)("describes $name with what it answers and how it refuses", ({ operation }) => {
    expect(operation.summary).toMatch(/\S/);
    expect(operation.description).toMatch(/\.$/);
    expect(operation.tags.filter((tag) => !(tag in chapters))).toEqual([]);
    const { "4XX": refused, "5XX": failed, ...done } = operation.responses;
    expect([refused?.$ref, failed?.$ref]).toEqual(["#/components/responses/Refused", "#/components/responses/Failed"]);
    expect(Object.keys(done).length).toBeGreaterThan(0);
    for (const [status, { content = {} }] of Object.entries(done)) {
      expect(status).toMatch(/^2\d\d$/);
      const schemas = Object.values(content).map(({ schema }) => schema);
      expect(schemas).toHaveLength(1);
      expect(Object.keys(schemas[0] ?? {}).length).toBeGreaterThan(0);
    }
  });

  it("refers only to what is in it, and holds no shared schema that is not used", () => {
    const references = [...JSON.stringify(api).matchAll(/"\$ref":"#\/([^"]+)"/g)].map(([, path = ""]) => path);
    // biome-ignore lint/suspicious/noExplicitAny: as above
    const find = (path: string) => path.split("/").reduce((at: any, step) => at?.[step], api);
    expect(references.filter((path) => find(path) === undefined)).toEqual([]);
    const shared = Object.keys(api.components.schemas).map((name) => `components/schemas/${name}`);
    expect(shared.filter((path) => !references.includes(path))).toEqual([]);
  });
});

/** Route → the answer that docs/api.md shows, where it is JSON. */
function readExampleAnswers(): [string, unknown][] {
  const page = readFileSync(new URL("../../../../docs/api.md", import.meta.url), "utf8");
  return page.split(/^### /m).flatMap((part) => {
    const route = /^`([^`]+)`\n/.exec(part)?.[1];
    const answer = /```json\n([\s\S]*?)\n```/.exec(part)?.[1];
    return route === undefined || answer === undefined ? [] : [[route, JSON.parse(answer)]];
  });
}

describe("the answers that docs/api.md shows", () => {
  it.each(readExampleAnswers())("%s is one that is described", (route, answer) => {
    const [schema] = Object.values(routeAnswers[route]?.bodies ?? {});
    if (typeof schema !== "object") return expect.unreachable(`${route} is described without a schema`);
    expect(describeProblem(route, schema, answer)).toBeUndefined();
  });
});

describe("what a test daemon answers", () => {
  const mark = { id: "01", client_message_id: "a", read_at: 1 };

  it("passes where it is described, and a refusal with details of its own", () => {
    expectDescribed("POST", "/v1/inbox/01/read", 200, mark);
    expectDescribed("POST", "/v1/inbox/01/read", 404, {
      error: "not_found",
      message: "No.",
      retryable: false,
      id: "01",
    });
  });

  it.each([
    ["a field that is not described", 200, { ...mark, more: 1 }, /"more"/],
    ["a field that is missing", 200, { id: "01", read_at: 1 }, /"client_message_id"/],
    ["a status that is not described", 201, mark, /answered 201/],
    ["a refusal without a code", 409, { message: "No.", retryable: false }, /"error"/],
  ])("fails with %s", (_, status, body, says) => {
    expect(() => expectDescribed("POST", "/v1/inbox/01/read", status, body)).toThrow(says);
  });
});

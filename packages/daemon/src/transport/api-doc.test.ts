// docs/api.md and the routes say the same: each has what the other has, every example asks for the route that it stands
// under, and every body in it is one that the route accepts.
import { readFileSync } from "node:fs";
import { createSchemaCompiler } from "@claudemesh/http/validation";
import { describe, expect, it } from "vitest";
import { drainModes } from "../core/drain-state.ts";
import { routes } from "./routes.ts";

type Example = {
  readonly requestLine: string;
  readonly body: string;
  readonly answer: string;
  readonly answerKind: string;
};
type Section = { readonly route: string; readonly example: Example | undefined };

const page = readFileSync(new URL("../../../../docs/api.md", import.meta.url), "utf8");
const compile = createSchemaCompiler();

/** One section for each heading that names a route. */
function readSections(text: string): Section[] {
  const [, ...parts] = text.split(/^### /m);
  return parts.map((part) => {
    const route = /^`([^`]+)`\n/.exec(part)?.[1] ?? "";
    const match = /```http\n(\S+ \S+)\n(?:\n([\s\S]*?)\n)?```\n\n```(json|text)\n([\s\S]*?)\n```/.exec(part);
    if (match === null) return { route, example: undefined };
    const [, requestLine = "", body = "", answerKind = "", answer = ""] = match;
    return { route, example: { requestLine, body, answer, answerKind } };
  });
}

const sections = readSections(page);
const nameOf = ({ method, url }: { readonly method: string; readonly url: string }) => `${method} ${url}`;
const routeNamed = (name: string) => routes.find((route) => nameOf(route) === name);

function patternOf(url: string): RegExp {
  const path = url.replaceAll(".", "\\.").replace(/:[a-z]+/g, "[^/?]+");
  return new RegExp(`^${path}(?:\\?(.*))?$`);
}

describe("docs/api.md", () => {
  it("describes every route once, and no other", () => {
    expect(sections.length).toBeGreaterThan(10);
    expect(sections.map(({ route }) => route).toSorted()).toEqual(routes.map(nameOf).toSorted());
  });

  it.each(sections)("has an example for $route that the route would take", ({ route: name, example }) => {
    const route = routeNamed(name);
    if (route === undefined || example === undefined) throw new Error(`${name} has no route or no example`);
    const [method = "", target = ""] = example.requestLine.split(" ");
    expect(method).toBe(route.method);
    const [, query = ""] = patternOf(route.url).exec(target) ?? expect.unreachable(`${target} is not ${route.url}`);
    const given = Object.fromEntries(new URLSearchParams(query));
    expect(compile(route.schema.querystring)(given)).toBeUndefined();
    const { body } = route.schema;
    if (body === undefined) expect(example.body).toBe("");
    else expect(compile(body)(example.body === "" ? null : JSON.parse(example.body))).toBeUndefined();
  });

  it("explains every mode of the drain, and no other", () => {
    const [, table = ""] = page.split("| `drain.state` |");
    const explained = [...table.slice(0, table.indexOf("\n\n")).matchAll(/^\| `(\w+)` \|/gm)].map(([, mode]) => mode);
    expect(explained.toSorted()).toEqual(drainModes.toSorted());
  });

  it.each(sections)("has an answer for $route that can be read", ({ example }) => {
    if (example?.answerKind === "json") expect(JSON.parse(example.answer)).toBeTypeOf("object");
    else expect(example?.answer).toMatch(/\S/);
  });
});

describe("the reading of the page", () => {
  it("finds nothing where there is nothing, and a section without an example as such", () => {
    expect(readSections("# API\n\nWords.\n")).toEqual([]);
    expect(readSections("### `GET /v1/x`\n\nWords.\n")).toEqual([{ route: "GET /v1/x", example: undefined }]);
  });
});

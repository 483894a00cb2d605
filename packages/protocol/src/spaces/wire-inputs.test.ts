// The inputs of a space's calls as a whole: they refuse what they do not know, bound what they take, and leave the names
// that a frame uses itself alone.
import { describe, expect, it } from "vitest";
import * as inputs from "./wire-inputs.ts";

type Schema = { readonly [key: string]: unknown };

const schemas = Object.entries(inputs).filter(([name]) => name.endsWith("InputSchema")) as unknown as [
  string,
  Schema,
][];
/** Free JSON, whose bounds are those of values. */
const freeObjects = new Set([
  "commit.invocation",
  "invocation",
  "commit.operations[].value",
  "commit.sends[].meta",
  "resolutions",
]);

/** Every schema inside, with where it stands. */
function inside(schema: Schema, at: string): { at: string; schema: Schema }[] {
  const properties = Object.entries((schema.properties ?? {}) as Record<string, Schema>);
  const inner = properties.flatMap(([name, property]) => inside(property, at === "" ? name : `${at}.${name}`));
  const items = schema.items === undefined ? [] : inside(schema.items as Schema, `${at}[]`);
  return [{ at, schema }, ...inner, ...items];
}

describe("the inputs of a space's calls", () => {
  it("are there", () => {
    expect(schemas.length).toBeGreaterThan(12);
  });

  it.each(schemas)("%s refuses unknown fields at every level and bounds every list and number", (_name, schema) => {
    for (const { at, schema: part } of inside(schema, "")) {
      if (part.type === "object" && !freeObjects.has(at)) expect(part.additionalProperties, at).toBe(false);
      if (part.type === "array") expect(part.maxItems, at).toBeTypeOf("number");
      if (part.type === "integer") expect([typeof part.minimum, typeof part.maximum], at).toEqual(["number", "number"]);
    }
  });

  it.each(schemas)("%s leaves type and id to the frame", (_name, schema) => {
    const names = Object.keys(schema.properties as object);
    expect(names.filter((name) => name === "type" || name === "id")).toEqual([]);
    expect((schema.required as string[]).every((name) => names.includes(name))).toBe(true);
  });
});

describe("a query", () => {
  it("is of ids, or of a prefix from a cursor on", () => {
    expect(inputs.readQuery({ space: "plan", ids: ["t:1"] })).toEqual({ kind: "ids", ids: ["t:1"] });
    expect(inputs.readQuery({ space: "plan", prefix: "t:", cursor: "x" })).toEqual({
      kind: "prefix",
      prefix: "t:",
      cursor: "x",
    });
    expect(inputs.readQuery({ space: "plan" })).toEqual({ kind: "prefix", prefix: "", cursor: undefined });
  });

  it("is not of both", () => {
    for (const more of [{ prefix: "t:" }, { cursor: "x" }]) {
      expect(() => inputs.readQuery({ space: "plan", ids: ["t:1"], ...more })).toThrow(
        expect.objectContaining({ code: "invalid_request" }),
      );
    }
  });
});

describe("resolutions", () => {
  it("are documents or null by id, decoded", () => {
    const read = inputs.readResolutions({ "t:1": { value: { "/": { "bigint@1": "5" } } }, "t:2": null });
    expect([...read]).toEqual([
      ["t:1", { value: 5n }],
      ["t:2", null],
    ]);
    expect(inputs.readResolutions(undefined).size).toBe(0);
  });

  it.each([
    [{ t: null }, "invalid_request"],
    [{ "t:1": 1 }, "invalid_request"],
    [{ "t:1": [1] }, "invalid_request"],
    [{ "t:1": { "/": { "bytes@1": "" } } }, "invalid_request"],
    [{ "t:1": { a: "x".repeat(1_048_576) } }, "payload_too_large"],
  ])("are refused when they are anything else", (resolutions, code) => {
    expect(() => inputs.readResolutions(resolutions)).toThrow(expect.objectContaining({ code }));
  });
});

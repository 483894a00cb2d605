// What the schema check accepts, and what its refusals say.
import { operations } from "@claudemesh/protocol/wire/operations";
import { describe, expect, test } from "vitest";
import { describePattern } from "./pattern-words.ts";
import { createSchemaCompiler } from "./validation.ts";

const check = createSchemaCompiler()({
  type: "object",
  additionalProperties: false,
  required: ["name"],
  properties: {
    name: { type: "string", minLength: 1, maxLength: 5, pattern: "^[a-z]*$" },
    count: { type: "integer", minimum: 1, maximum: 10, default: 3 },
    colour: { type: "string", enum: ["red", "blue"] },
    free: { type: "object" },
    owner: {
      type: "object",
      additionalProperties: false,
      required: ["key"],
      properties: { key: { type: "string" }, "a/b~c": { type: "boolean" } },
    },
    list: { type: "array", minItems: 1, items: { type: "integer" } },
  },
});

function parse(json: string): unknown {
  return JSON.parse(json);
}

function refusalOf(json: string) {
  const error = check(parse(json));
  return error && { code: error.code, field: error.details.field, message: error.message };
}

describe("a value that fits", () => {
  test.each([
    '{"name":"a"}',
    '{"name":"a","count":10,"colour":"red","owner":{"key":""},"list":[0]}',
    '{"name":"a","free":{"__proto__":{"x":1},"constructor":2}}',
    '{"name":"a","count":2.0}',
  ])("%s is accepted and left as it is", (json) => {
    const value = parse(json);
    expect(check(value)).toBeUndefined();
    expect(JSON.stringify(value)).toBe(JSON.stringify(parse(json)));
  });
});

describe("a value that does not fit", () => {
  test.each([
    ['{"name":1}', "name"],
    ['{"name":null}', "name"],
    ['{"name":["a"]}', "name"],
    ['{"name":""}', "name"],
    ['{"name":"aaaaaa"}', "name"],
    ['{"name":"A"}', "name"],
    ['{"name":"a","count":"1"}', "count"],
    ['{"name":"a","count":1.5}', "count"],
    ['{"name":"a","count":true}', "count"],
    ['{"name":"a","count":null}', "count"],
    ['{"name":"a","count":0}', "count"],
    ['{"name":"a","count":11}', "count"],
    ['{"name":"a","free":[]}', "free"],
    ['{"name":"a","owner":{"key":1}}', "owner.key"],
    ['{"name":"a","owner":{"key":"","a/b~c":0}}', "owner.a/b~c"],
    ['{"name":"a","list":[1,"2"]}', "list.1"],
    ['{"name":"a","list":[]}', "list"],
    ['{"name":"a","list":{"0":1}}', "list"],
  ])("%s is refused and names %s", (json, field) => {
    expect(refusalOf(json)).toMatchObject({ code: "invalid_request", field });
    expect(refusalOf(json)?.message).toContain(`"${field}"`);
  });

  test("a missing field is named with its place", () => {
    expect(refusalOf("{}")).toEqual({
      code: "invalid_request",
      field: "name",
      message: 'The field "name" is missing.',
    });
    expect(refusalOf('{"name":"a","owner":{}}')).toMatchObject({ field: "owner.key" });
  });

  test("an inherited property does not stand in for a missing one", () => {
    const needsValueOf = createSchemaCompiler()({ type: "object", required: ["valueOf"], properties: { valueOf: {} } });
    expect(needsValueOf({})?.details.field).toBe("valueOf");
  });

  test.each(["extra", "__proto__", "constructor", "toString", "hasOwnProperty", ""])(
    "the unknown field %j is refused by name",
    (field) => {
      const error = check(parse(`{"name":"a",${JSON.stringify(field)}:1}`));
      expect(error).toMatchObject({ code: "unknown_field", details: { field } });
      const nested = check(parse(`{"name":"a","owner":{"key":"",${JSON.stringify(field)}:1}}`));
      expect(nested).toMatchObject({ code: "unknown_field", details: { field: `owner.${field}` } });
    },
  );

  test("a value outside a list is told the list", () => {
    expect(refusalOf('{"name":"a","colour":"green"}')?.message).toContain("red, blue");
  });

  test.each(["null", "[]", '"x"', "1", "true"])("%s in place of an object is refused without a field", (json) => {
    expect(refusalOf(json)).toMatchObject({ code: "invalid_request", field: undefined });
    expect(refusalOf(json)?.message).toMatch(/^The request /);
  });
});

describe("a refusal is worded for people", () => {
  const worded = createSchemaCompiler()({
    type: "object",
    properties: {
      id: { type: "string", minLength: 36, maxLength: 36 },
      word: { type: "string", minLength: 1, maxLength: 8 },
      text: { type: "string", minLength: 1 },
      long: { type: "string", maxLength: 3 },
      only: { const: "register" },
      share: { type: "number", minimum: 0, maximum: 1 },
      count: { type: "integer", minimum: 1 },
      either: { anyOf: [{ type: "string" }, { type: "null" }] },
      list: { type: "array", maxItems: 1, uniqueItems: true },
      odd: { type: "string", pattern: "^(a|b)+$" },
    },
  });

  test.each([
    [{ id: "x" }, 'The field "id" must be an id of 36 characters, such as 0198c0de-0000-7000-8000-000000000000.'],
    [{ word: "" }, 'The field "word" must have 1 to 8 characters.'],
    [{ text: "" }, 'The field "text" must not be empty.'],
    [{ long: "abcd" }, 'The field "long" must have at most 3 characters.'],
    [{ only: "x" }, 'The field "only" must be "register".'],
    [{ share: 2 }, 'The field "share" must be from 0 to 1.'],
    [{ count: 0 }, 'The field "count" must be at least 1.'],
    [{ count: "1" }, 'The field "count" must be a whole number.'],
    [{ either: 1 }, 'The field "either" must be text or null.'],
    [{ list: [1, 2] }, 'The field "list" must have at most 1 entry.'],
    [{ odd: "c" }, 'The field "odd" does not have the form that is accepted here.'],
    [[], "The request must be an object with fields."],
  ])("%j: %s", (value, message) => {
    expect(worded(value)?.message).toBe(message);
  });

  const wrong = [1, -1, 1.5, 1e300, true, null, "", "\u0000", "x y", "x".repeat(5_000), [], [1, 1], {}, { a: 1 }];
  const raw = /must NOT|must match|must be (string|integer|number|boolean|object|array|equal|<|>)|pattern|schema|\^|\$/;

  test.each(Object.entries(operations))("also where anything at all is given to %s", (_, { input }) => {
    const validate = createSchemaCompiler()(input);
    const fields: string[] = Object.keys((input as { properties?: object }).properties ?? {});
    const required: readonly string[] = (input as { required?: readonly string[] }).required ?? [];
    const others = Object.fromEntries(required.map((field) => [field, "0"]));
    const messages = fields.flatMap((field) => wrong.map((value) => validate({ ...others, [field]: value })?.message));
    expect(messages.filter((message) => message !== undefined && raw.test(message))).toEqual([]);
  });

  test.each(Object.entries(operations))("every pattern of %s has words of its own", (_, { input }) => {
    const patterns = [...JSON.stringify(input).matchAll(/"pattern":("(?:[^"\\]|\\.)*")/g)];
    const unworded = patterns.map(([, text = ""]) => JSON.parse(text)).filter((each) => !describePattern(each));
    expect(unworded).toEqual([]);
  });
});

// A schema is compiled at its first request, so that a server would start with one that cannot be.
test.for(Object.entries(operations))("the schema of %s can be compiled", ([, { input }]) => {
  expect(() => createSchemaCompiler()(input)(null)).not.toThrow();
});

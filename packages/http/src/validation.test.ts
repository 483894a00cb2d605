// What the schema check accepts, and what its refusals say.
import { operations } from "@claudemesh/protocol/wire/operations";
import { describe, expect, test } from "vitest";
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

// A schema is compiled at its first request, so that a server would start with one that cannot be.
test.for(Object.entries(operations))("the schema of %s can be compiled", ([, { input }]) => {
  expect(() => createSchemaCompiler()(input)(null)).not.toThrow();
});

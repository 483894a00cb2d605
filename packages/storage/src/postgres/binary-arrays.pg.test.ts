// Arrays in the binary format, read back by the server that they are for.
import { randomUUID } from "node:crypto";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createTestDatabase } from "../../../../tests/support/services.ts";
import { float8Array, int4Array, textArray, uuidArray } from "./binary-arrays.ts";

const database = await createTestDatabase("binary_arrays");
afterAll(() => database?.drop());

describe.skipIf(database === undefined)("an array in the binary format", () => {
  const client = new pg.Client({ connectionString: database?.url });
  beforeAll(() => client.connect());
  afterAll(() => client.end());

  async function readBack(type: string, array: Buffer): Promise<unknown> {
    return (await client.query(`SELECT $1::${type}[] AS value`, [array])).rows[0]?.value;
  }

  test.each([
    ["nothing", []],
    ["plain texts", ["a", "", "topic"]],
    ["what the text format would escape", ['"', "\\\\", "{}", ",", "NULL", " "]],
    ["characters of every length", ["é", "€", "😀", "a😀é"]],
    ["nulls between texts", [null, "a", null]],
  ])("of texts holds %s", async (_, values) => {
    expect(await readBack("text", textArray(values))).toEqual(values);
  });

  test("of whole numbers holds the least and the greatest", async () => {
    const values = [0, 1, -1, 2_147_483_647, -2_147_483_648];
    expect(await readBack("int4", int4Array(values))).toEqual(values);
  });

  test("of numbers holds times in milliseconds, and nulls", async () => {
    const values = [1_700_000_000_123, null, 0.5, Number.MAX_SAFE_INTEGER];
    expect(await readBack("float8", float8Array(values))).toEqual(values);
  });

  test("of UUIDs holds them in either case", async () => {
    const values = [randomUUID(), randomUUID(), "00000000-0000-0000-0000-000000000000"];
    const offered = values.map((value, index) => (index === 0 ? value.toUpperCase() : value));
    expect(await readBack("uuid", uuidArray(offered))).toEqual(values);
  });

  test.each(["", "mesh-1", `${randomUUID()}0`, randomUUID().slice(1), "g".repeat(32)])(
    "of UUIDs takes no other text: %o",
    (text) => {
      expect(() => uuidArray([text])).toThrow();
    },
  );
});

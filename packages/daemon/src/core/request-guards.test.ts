import { describe, expect, it } from "vitest";
import { findTokenInQuery, isLoopbackHost, readBearer } from "./request-guards.ts";

const token = "0123456789abcdef".repeat(4);
const encode = (text: string) => [...text].map((c) => `%${c.charCodeAt(0).toString(16)}`).join("");

describe("a token in a query string", () => {
  it.each([
    `a=${token}`,
    `a=1&b=x${token}y`,
    `${token}`,
    `${token}=1`,
    `a=${token.toUpperCase()}`,
    `a=${encode(token)}`,
    `a=${encodeURIComponent(encode(token))}`,
    `a=${token.slice(0, 10)}%${token.charCodeAt(10).toString(16)}${token.slice(11)}`,
  ])("is found in %s, and its name not shown", (query) => {
    expect(findTokenInQuery(query, token)).toEqual({ found: true, parameter: "(redacted)" });
  });

  it.each([
    ["token=x", "token"],
    ["a=1&ACCESS_TOKEN=x", "access_token"],
    ["local-token", "local_token"],
    ["%74oken=", "token"],
    ["authorization=Bearer", "authorization"],
  ])("is suspected by its name in %s", (query, parameter) => {
    expect(findTokenInQuery(query, token)).toEqual({ found: true, parameter });
  });

  it.each(["", "limit=5&cursor=01ARZ3NDEKTSV4RRFFQ69G5FAV", "from=@tokenizer", "q=%", "q=%zz", "topic=token"])(
    "is not seen in %s",
    (query) => {
      expect(findTokenInQuery(query, token)).toEqual({ found: false });
    },
  );
});

describe("a Host", () => {
  it.each(["localhost", "localhost:80", "127.0.0.1", "127.0.0.1:7600", "[::1]", "[::1]:7600", "LocalHost"])(
    "%s is this machine's loopback",
    (host) => expect(isLoopbackHost(host)).toBe(true),
  );

  it.each([
    undefined,
    "",
    "::1",
    "127.1",
    "localhost:",
    "localhost:123456",
    "localhost.",
    "a localhost",
    "127.0.0.1@x",
  ])("%s is not", (host) => expect(isLoopbackHost(host)).toBe(false));
});

describe("credentials", () => {
  it.each([
    ["Bearer abc", "abc"],
    ["bearer abc", "abc"],
    ["Bearer  abc ", "abc"],
    ["Bearer a b", undefined],
    ["Basic abc", undefined],
    ["abc", undefined],
    [undefined, undefined],
  ])("%s hold %s", (header, expected) => {
    expect(readBearer(header)).toBe(expected);
  });
});

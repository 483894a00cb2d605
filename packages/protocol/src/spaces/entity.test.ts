// Ids, branches and the text of documents.
import { describe, expect, it } from "vitest";
import {
  fitsBytes,
  fitsDocument,
  isBranchId,
  isEntityId,
  isNewBranchName,
  readBranchId,
  readDocument,
  spaceLimits,
  writeDocument,
} from "./entity.ts";

describe("an entity id", () => {
  it.each(["task:1", "of:baedrei", "urn:uuid:0192", "a:/b c?ü", `t:${"x".repeat(510)}`, `t:${"😀".repeat(510)}`])(
    "may be %s",
    (id) => {
      expect(isEntityId(id)).toBe(true);
    },
  );

  it.each(["", "task", ":1", "task:", "1task:1", "ta sk:1", "t:\u0000", "t:a\nb", "t:\ud800", `t:${"x".repeat(511)}`])(
    "may not be %j",
    (id) => {
      expect(isEntityId(id)).toBe(false);
    },
  );
});

describe("a branch", () => {
  it("is the default one or has a name", () => {
    expect(["", "draft", "a.b-c_1"].every(isBranchId)).toBe(true);
    expect(["-a", "a b", "a/b", "ä"].some(isBranchId)).toBe(false);
  });

  it("that is new is neither the default one nor called so", () => {
    expect(isNewBranchName("draft")).toBe(true);
    expect(isNewBranchName("")).toBe(false);
    expect(isNewBranchName("main")).toBe(false);
  });

  it("that is left out, empty or main is the default one", () => {
    expect([undefined, "", "main", "draft"].map(readBranchId)).toEqual(["", "", "", "draft"]);
  });
});

describe("a document's text", () => {
  it("comes back, large doubles and strange keys included", () => {
    const document = JSON.parse('{"value":[0.5,1e-7],"__proto__":{"a":1}}') as { value: number[] };
    const withLeaves = { ...document, big: 2n ** 70n, none: undefined, bytes: new Uint8Array([1, 2]) };
    expect(readDocument(writeDocument(withLeaves))).toEqual(withLeaves);
  });

  it("that is no document is refused", () => {
    expect(() => readDocument("[1]")).toThrow(expect.objectContaining({ code: "invalid_request" }));
    expect(() => readDocument('{"/":{"bytes@1":""}}')).toThrow(expect.objectContaining({ code: "invalid_request" }));
  });

  it("is measured in UTF-8 bytes", () => {
    const room = spaceLimits.documentBytes - '{"a":""}'.length;
    expect(fitsDocument(writeDocument({ a: "x".repeat(room) }))).toBe(true);
    expect(fitsDocument(writeDocument({ a: "x".repeat(room + 1) }))).toBe(false);
    expect(fitsDocument(writeDocument({ a: "ü".repeat(room / 2) }))).toBe(true);
    expect(fitsDocument(writeDocument({ a: "ü".repeat(room / 2 + 1) }))).toBe(false);
    expect([fitsBytes("€", 3), fitsBytes("€", 2)]).toEqual([true, false]);
  });
});

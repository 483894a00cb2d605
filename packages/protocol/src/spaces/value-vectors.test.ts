// The published values of spaces: what other implementations are tried with must be what ours keeps.
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { canonicalJson } from "../canonical/canonical-json.ts";
import { MeshError } from "../errors/errors.ts";
import { parseOwnJsonText, parseStrictJsonText, StrictJsonError } from "../json/strict-json.ts";
import { isEntityId } from "./entity.ts";
import { decodeFabric, encodeFabric } from "./fabric-value.ts";

type Vectors = {
  readonly accept: readonly { readonly name: string; readonly text: string; readonly stored?: string }[];
  readonly refuse: readonly { readonly name: string; readonly text: string; readonly error?: string }[];
  readonly ids: readonly string[];
  readonly not_ids: readonly string[];
};

const page = readFileSync(new URL("../../vectors/spaces-values.json", import.meta.url), "utf8");
const vectors = parseOwnJsonText(page) as unknown as Vectors;
const parse = (text: string) => parseStrictJsonText(text, { maxDepth: 64 });

describe("the value vectors", () => {
  it.each(vectors.accept)("accept: $name", ({ text, stored = text }) => {
    const encoded = encodeFabric(decodeFabric(parse(text)));
    expect(canonicalJson(encoded)).toBe(canonicalJson(parse(stored)));
  });

  it.each(vectors.refuse)("refuse: $name", ({ text, error = "invalid_request" }) => {
    let code: string | undefined;
    try {
      decodeFabric(parse(text));
    } catch (refusal) {
      if (refusal instanceof StrictJsonError) code = refusal.reason;
      else if (refusal instanceof MeshError) code = refusal.code;
      else throw refusal;
    }
    expect(code).toBe(error);
  });

  it("tell ids from other texts", () => {
    expect(vectors.ids.filter((id) => !isEntityId(id))).toEqual([]);
    expect(vectors.not_ids.filter(isEntityId)).toEqual([]);
  });
});

// How `once` treats its two values: inputs become a fingerprint, and the broker learns nothing else of them; a result
// becomes canonical text, so that the same result again is the same text. Both are plain JSON of limited depth.
import { canonicalJson } from "../canonical/canonical-json.ts";
import { utf8Length } from "../encoding/utf8.ts";
import { MeshError } from "../errors/errors.ts";
import type { JsonValue } from "../json/strict-json.ts";
import type { Sha256 } from "../messages/fingerprint.ts";
import { onceLimits } from "./once-limits.ts";

/** SHA-256 over the canonical JSON of the inputs, in lower-case hex. */
export function onceInputsFingerprint(sha256: Sha256, inputs: JsonValue): string {
  return sha256.hex(canonicalText(inputs, "inputs"));
}

/** A result as it is stored and compared; throws where it is too large to store. */
export function onceResultText(result: JsonValue): string {
  const text = canonicalText(result, "result");
  if (utf8Length(text) > onceLimits.resultBytes) {
    throw new MeshError("payload_too_large", "The result is larger than the limit; record where it is kept instead.", {
      field: "result",
      limit_bytes: onceLimits.resultBytes,
    });
  }
  return text;
}

function canonicalText(value: JsonValue, field: string): string {
  let text: string;
  try {
    text = canonicalJson(value);
  } catch (cause) {
    if (!(cause instanceof TypeError)) throw cause;
    throw new MeshError("invalid_request", `"${field}" must be plain JSON (${cause.message}).`, { field }, cause);
  }
  if (isDeeperThan(value, onceLimits.valueDepth)) {
    const message = `"${field}" is nested deeper than ${onceLimits.valueDepth} levels.`;
    throw new MeshError("too_deep", message, { field, limit: onceLimits.valueDepth });
  }
  return text;
}

function isDeeperThan(root: JsonValue, depthMax: number): boolean {
  let level: JsonValue[] = [root];
  for (let depth = 0; level.length > 0; depth++) {
    const containers = level.filter((value) => typeof value === "object" && value !== null);
    if (containers.length > 0 && depth === depthMax) return true;
    level = containers.flatMap((container): JsonValue[] => Object.values(container as object));
  }
  return false;
}

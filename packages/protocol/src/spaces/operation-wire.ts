// Operations on the wire: encoded values, one flat schema for the three kinds and one for the patches, so that a
// refusal names the field that is wrong. The reader checks which fields each kind has.
import type { FromSchema, JSONSchema } from "json-schema-to-ts";
import { MeshError } from "../errors/errors.ts";
import type { JsonValue } from "../json/strict-json.ts";
import { entityIdPattern, fitsDocument, isEntityDocument, isEntityId, spaceLimits } from "./entity.ts";
import { decodeFabric, encodeFabric, type FabricValue } from "./fabric-value.ts";
import { type Operation, operationKinds, type PatchOp, patchKinds } from "./operations.ts";
import { readPointer } from "./pointer.ts";

const count = { type: "integer", minimum: 0, maximum: Number.MAX_SAFE_INTEGER } as const;
const pointer = { type: "string", maxLength: spaceLimits.pathCharacters } as const;

export const patchSchema = {
  type: "object",
  additionalProperties: false,
  required: ["op", "path"],
  properties: {
    op: { type: "string", enum: patchKinds },
    path: pointer,
    from: pointer,
    value: {},
    index: count,
    remove: count,
    add: { type: "array", maxItems: spaceLimits.spliceItems, items: {} },
  },
} as const satisfies JSONSchema;

export const operationSchema = {
  type: "object",
  additionalProperties: false,
  required: ["op", "id"],
  properties: {
    op: { type: "string", enum: operationKinds },
    id: { type: "string", minLength: 1, maxLength: spaceLimits.entityIdCharacters, pattern: entityIdPattern },
    value: { type: "object" },
    patches: { type: "array", minItems: 1, maxItems: spaceLimits.patchesPerCommit, items: patchSchema },
  },
} as const satisfies JSONSchema;

export type EncodedOperation = FromSchema<typeof operationSchema>;
export type EncodedPatch = FromSchema<typeof patchSchema>;

const operationFields = { set: ["value"], patch: ["patches"], delete: [] } as const;
const patchFields = {
  add: ["value"],
  replace: ["value"],
  remove: [],
  move: ["from"],
  test: ["value"],
  splice: ["index", "remove", "add"],
} as const;

/** `field` is the path of the operation in the request. */
export function readOperation(encoded: EncodedOperation, field: string): Operation {
  const { op, id } = encoded;
  if (!isEntityId(id)) {
    throw new MeshError("invalid_request", "An entity id is scheme:rest, 1–512 characters.", { field: `${field}.id` });
  }
  checkFields(encoded, ["op", "id"], operationFields[op], field);
  if (op === "delete") return { op, id };
  if (op === "patch") {
    const patches = (encoded.patches ?? []).map((patch, index) => readPatch(patch, `${field}.patches.${index}`));
    return { op, id, patches };
  }
  const value = decodeAt(encoded.value as JsonValue, `${field}.value`);
  if (!isEntityDocument(value)) {
    throw new MeshError("invalid_request", "A document is an object.", { field: `${field}.value` });
  }
  if (!fitsDocument(JSON.stringify(encoded.value))) {
    const details = { field: `${field}.value`, limit_bytes: spaceLimits.documentBytes };
    throw new MeshError("payload_too_large", "A document is at most 1 MiB.", details);
  }
  return { op, id, value };
}

export function encodeOperation(operation: Operation): EncodedOperation {
  if (operation.op === "delete") return { op: operation.op, id: operation.id };
  if (operation.op === "patch") {
    return { op: operation.op, id: operation.id, patches: operation.patches.map(encodePatch) };
  }
  return { op: operation.op, id: operation.id, value: encodeFabric(operation.value) as { [key: string]: JsonValue } };
}

function readPatch(encoded: EncodedPatch, field: string): PatchOp {
  const { op, path } = encoded;
  checkFields(encoded, ["op", "path"], patchFields[op], field);
  readPointer(path, `${field}.path`);
  switch (op) {
    case "add":
    case "replace":
    case "test":
      return { op, path, value: decodeAt(encoded.value as JsonValue, `${field}.value`) };
    case "remove":
      return { op, path };
    case "move": {
      const from = encoded.from ?? "";
      readPointer(from, `${field}.from`);
      return { op, from, path };
    }
    case "splice": {
      const add = (encoded.add ?? []).map((item, index) => decodeAt(item as JsonValue, `${field}.add.${index}`));
      return { op, path, index: encoded.index ?? 0, remove: encoded.remove ?? 0, add };
    }
  }
}

function encodePatch(patch: PatchOp): EncodedPatch {
  switch (patch.op) {
    case "add":
    case "replace":
    case "test":
      return { op: patch.op, path: patch.path, value: encodeFabric(patch.value) };
    case "splice":
      return { ...patch, add: patch.add.map(encodeFabric) };
    default:
      return patch;
  }
}

/** Checks that an operation has all the fields of its kind, and no other kind's. */
function checkFields(encoded: object, common: readonly string[], own: readonly string[], field: string): void {
  const missing = own.find((name) => !Object.hasOwn(encoded, name));
  if (missing !== undefined) {
    throw new MeshError("invalid_request", `${field}.${missing} is missing.`, { field: `${field}.${missing}` });
  }
  const extra = Object.keys(encoded).find((name) => !common.includes(name) && !own.includes(name));
  if (extra !== undefined) {
    throw new MeshError("unknown_field", `${field} does not take ${extra}.`, { field: `${field}.${extra}` });
  }
}

/** Decodes a value; a refusal names the field of the request that holds it. */
function decodeAt(json: JsonValue, field: string): FabricValue {
  try {
    return decodeFabric(json);
  } catch (cause) {
    if (!(cause instanceof MeshError)) throw cause;
    throw new MeshError(cause.code, cause.message, { ...cause.details, field }, cause);
  }
}

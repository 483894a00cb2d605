// Turns a JSON Schema into a check that accepts exactly what the schema says: no coercion, no defaults, no removal.
// The same check serves HTTP bodies and WebSocket frames.
import { createRequire } from "node:module";
import { MeshError } from "@claudemesh/protocol/errors";
import type { Ajv, ErrorObject, ValidateFunction } from "ajv";
import { describeViolation } from "./schema-words.ts";

export type Validator = (value: unknown) => MeshError | undefined;

/**
 * One compiler per server: it caches compiled schemas by identity. Ajv is loaded, and each schema compiled, when first
 * needed: a server has dozens of schemas, and its start should not wait for all of them. Tests compile every one.
 */
export function createSchemaCompiler(): (schema: object) => Validator {
  let ajv: Ajv | undefined;
  return (schema) => {
    let validate: ValidateFunction | undefined;
    return (value) => {
      ajv ??= createStrictAjv();
      validate ??= ajv.compile(schema);
      return validate(value) ? undefined : explain(validate.errors ?? []);
    };
  };
}

function createStrictAjv(): Ajv {
  const loaded = createRequire(import.meta.url)("ajv") as typeof import("ajv");
  return new loaded.Ajv({
    // The schemas are our own constants: checking them against the schema of schemas would cost every start more than
    // compiling them.
    meta: false,
    validateSchema: false,
    strict: true,
    allErrors: false,
    // A length or a range is described with both ends, and an error alone knows only one of them.
    verbose: true,
    coerceTypes: false,
    removeAdditional: false,
    useDefaults: false,
    ownProperties: true,
    allowUnionTypes: true,
  });
}

function explain(errors: readonly ErrorObject[]): MeshError {
  const [error] = errors;
  if (error === undefined) return new MeshError("invalid_request");
  const at = fieldPath(error.instancePath);
  if (error.keyword === "additionalProperties") {
    const field = joinField(at, String(error.params.additionalProperty));
    return new MeshError("unknown_field", `The field ${JSON.stringify(field)} is not known here.`, { field });
  }
  if (error.keyword === "required") {
    const field = joinField(at, String(error.params.missingProperty));
    return new MeshError("invalid_request", `The field ${JSON.stringify(field)} is missing.`, { field });
  }
  const subject = at === "" ? "The request" : `The field ${JSON.stringify(at)}`;
  const message = `${subject} ${describeViolation(errors)}.`;
  return new MeshError("invalid_request", message, at === "" ? {} : { field: at });
}

function fieldPath(instancePath: string): string {
  return instancePath
    .split("/")
    .slice(1)
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"))
    .join(".");
}

function joinField(parent: string, child: string): string {
  return parent === "" ? child : `${parent}.${child}`;
}

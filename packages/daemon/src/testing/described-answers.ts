// Holds what a daemon answers in tests against what /openapi.json says that it answers.
// Why: docs/decisions/0148.
import { createSchemaCompiler, type Validator } from "@claudemesh/http/validation";
import { type AnswerSchema, componentSchemas } from "../transport/answer-schemas.ts";
import { routeAnswers } from "../transport/answers.ts";

const compile = createSchemaCompiler();
const validators = new Map<string, Validator>();

/** The broker answers these, and in tests a script plays the broker. */
const passedOn = new Set(["topics", "queues", "peers"]);

/** Throws where a described route gives an answer that its description does not allow or does not name a field of. */
export function expectDescribed(method: string, path: string, status: number, body: unknown): void {
  const route = routeOf(method, path.split("?", 1)[0] ?? path);
  if (route === undefined || typeof body !== "object") return;
  const described = routeAnswers[route];
  if (described === undefined || passedOn.has(described.chapter)) return;
  const schema = status >= 400 ? componentSchemas.Error : described.bodies[status];
  if (schema === undefined)
    throw new Error(`${route} answered ${status}, which transport/answers.ts does not describe`);
  if (typeof schema === "string") return;
  const problem = describeProblem(`${route} ${status}`, schema, body);
  if (problem !== undefined)
    throw new Error(`${route} answered otherwise than transport/answer-schemas.ts says: ${problem}`);
}

/** What is wrong with `body`, also where it is a field that `schema` does not name. */
export function describeProblem(name: string, schema: AnswerSchema, body: unknown): string | undefined {
  const validator = validators.get(name) ?? compile(close(schema) as AnswerSchema);
  validators.set(name, validator);
  return validator(body)?.message;
}

function routeOf(method: string, path: string): string | undefined {
  const exact = `${method} ${path}`;
  if (exact in routeAnswers) return exact;
  return Object.keys(routeAnswers).find((route) => {
    const pattern = route.replaceAll(".", "\\.").replace(/:[a-z]+/g, "[^/]+");
    return new RegExp(`^${pattern}$`).test(exact);
  });
}

/** The same schema without room for fields that it does not name, and with what it refers to inside. */
function close(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(close);
  if (typeof schema !== "object" || schema === null) return schema;
  const { $ref, ...rest } = schema as { readonly $ref?: string; readonly properties?: object };
  if ($ref !== undefined) return close(componentSchemas[$ref.replace("#/components/schemas/", "")]);
  const closed = Object.fromEntries(Object.entries(rest).map(([keyword, value]) => [keyword, close(value)]));
  return rest.properties === undefined ? closed : { additionalProperties: false, ...closed };
}

// The broker's HTTP API described by the table of its operations, so that the description cannot say anything else than the
// server checks. What operations answer is in docs/protocol.md; here it is an object that may gain fields.
import { type OperationName, type OperationSpec, operations } from "@claudemesh/protocol/wire/operations";
import type { FastifyInstance } from "fastify";
import { operationSummaries } from "./operation-summaries.ts";

/** Of the paths, which begin with it. */
const apiVersion = "1";

export function registerDescription(server: FastifyInstance): void {
  let description: object | undefined;
  server.get("/openapi.json", async () => {
    description ??= describeBrokerApi();
    return description;
  });
}

function describeBrokerApi(): Record<string, unknown> {
  const paths: Record<string, Record<string, object>> = {};
  const tags = new Set<string>();
  for (const [name, summary] of Object.entries(operationSummaries)) {
    const { http, input }: OperationSpec = operations[name as OperationName];
    if (http === undefined) continue;
    const path = `/v1/meshes/{mesh}${http.path.replaceAll(/:(\w+)/g, "{$1}")}`;
    const [tag = name] = name.includes(".") ? name.split(".") : ["messages"];
    tags.add(tag);
    const operation = { ...head(name, tag, summary), ...takes(http, input), responses };
    paths[path] = { ...paths[path], [http.method.toLowerCase()]: operation };
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "claudemesh broker",
      version: apiVersion,
      description: "Every operation of a mesh for a member's bearer token. docs/protocol.md says what each answers.",
      contact: { name: "The maintainers of claudemesh" },
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: "/", description: "The broker that serves this description." }],
    tags: [...tags].map((name) => ({ name, description: `Operations of ${name}` })),
    security: [{ memberToken: [] }],
    paths,
    components: {
      securitySchemes: { memberToken: { type: "http", scheme: "bearer" } },
      schemas: { Answer: answerSchema, Error: errorSchema },
      responses: {
        Done: answer("Done, or done before: a retry gets the first answer.", "Answer"),
        Refused: answer("The request was refused, and nothing has changed.", "Error"),
        Failed: answer(
          "The broker cannot serve it now; `retryable` says whether the request may succeed later.",
          "Error",
        ),
      },
    },
  };
}

const responses = {
  "2XX": { $ref: "#/components/responses/Done" },
  "4XX": { $ref: "#/components/responses/Refused" },
  "5XX": { $ref: "#/components/responses/Failed" },
};

const answerSchema = { type: "object", description: "It may gain fields.", additionalProperties: true };
const errorSchema = {
  type: "object",
  required: ["error", "message", "retryable"],
  properties: {
    error: { type: "string", description: "A stable code; docs/errors.md lists them." },
    message: { type: "string" },
    retryable: { type: "boolean", description: "The same request may succeed later, unchanged." },
    field: { type: "string", description: "The field that is wrong, where one is." },
  },
  additionalProperties: true,
};

function answer(description: string, schema: "Answer" | "Error"): object {
  return { description, content: jsonContent({ $ref: `#/components/schemas/${schema}` }) };
}

function head(name: string, tag: string, summary: string): object {
  const operationId = name.replaceAll(/\.(\w)/g, (_, letter: string) => letter.toUpperCase());
  return { operationId, tags: [tag], summary, description: `${summary}.` };
}

/** Fields of an input that are not in the path are the query of a GET or DELETE, and else the body, by the body's names. */
function takes(
  { method, path, names = {} }: NonNullable<OperationSpec["http"]>,
  input: OperationSpec["input"],
): object {
  const inPath = [...path.matchAll(/:(\w+)/g)].map(([, field]) => field ?? "");
  const rest = Object.entries(input.properties).filter(([field]) => !inPath.includes(field));
  const { required = [] } = input as { readonly required?: readonly string[] };
  const isRequired = (field: string) => required.includes(field);
  const parameters = [
    parameter("mesh", "path", true, { type: "string" }),
    ...inPath.map((field) => parameter(field, "path", true, input.properties[field])),
  ];
  if (method === "GET" || method === "DELETE") {
    return {
      parameters: [
        ...parameters,
        ...rest.map(([field, schema]) => parameter(field, "query", isRequired(field), schema)),
      ],
    };
  }
  const nameOf = (field: string) => Object.keys(names).find((given) => names[given] === field) ?? field;
  if (rest.length === 0) return { parameters };
  const inBody = rest.map(([field]) => field).filter(isRequired);
  const schema = {
    ...(input as object),
    required: inBody.map(nameOf),
    properties: Object.fromEntries(rest.map(([field, property]) => [nameOf(field), property])),
  };
  return { parameters, requestBody: { required: inBody.length > 0, content: jsonContent(schema) } };
}

function parameter(name: string, within: "path" | "query", required: boolean, schema: unknown): object {
  return { name, in: within, required, schema };
}

function jsonContent(schema: object): object {
  return { "application/json": { schema } };
}

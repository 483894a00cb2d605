// The local API described by its own route tables, so that the description cannot say anything else than the server
// checks.
import type { RouteFacts } from "./route.ts";

type Schema = { readonly properties?: Readonly<Record<string, object>>; readonly required?: readonly string[] };

const errorSchema = {
  type: "object",
  required: ["error", "message", "retryable"],
  properties: {
    error: { type: "string", description: "A stable code; docs/errors.md lists them." },
    message: { type: "string" },
    retryable: { type: "boolean", description: "The same request may succeed later, unchanged." },
  },
} as const;

export function describeApi(routes: readonly RouteFacts[], version: string): Record<string, unknown> {
  const paths: Record<string, Record<string, object>> = {};
  for (const route of routes) {
    const path = route.url.replaceAll(/:(\w+)/g, "{$1}");
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: describeRoute(route) };
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "claudemesh daemon",
      version,
      description:
        "On the Unix socket no token is needed; on the loopback every route takes the local token as a bearer token.",
    },
    security: [{ localToken: [] }, {}],
    paths,
    components: {
      securitySchemes: { localToken: { type: "http", scheme: "bearer" } },
      schemas: { Error: errorSchema },
      responses: {
        Refused: { description: "A refusal", content: jsonContent({ $ref: "#/components/schemas/Error" }) },
      },
    },
  };
}

function describeRoute(route: RouteFacts): object {
  const { schema, summary, headers = {} } = route;
  const parameters = [
    ...parametersIn("path", schema.params),
    ...parametersIn("query", schema.querystring),
    ...Object.entries(headers).map(([name, description]) => ({
      name,
      in: "header",
      description,
      schema: { type: "string" },
    })),
  ];
  return {
    summary,
    ...(route.unixSocketOnly === true ? { description: "Only over the Unix socket." } : {}),
    parameters,
    ...(schema.body === undefined ? {} : { requestBody: { content: jsonContent(schema.body) } }),
    responses: { "2XX": { description: "Done" }, default: { $ref: "#/components/responses/Refused" } },
  };
}

function parametersIn(place: "path" | "query", schema: Schema | undefined): object[] {
  return Object.entries(schema?.properties ?? {}).map(([name, property]) => ({
    name,
    in: place,
    required: place === "path" || schema?.required?.includes(name) === true,
    schema: property,
  }));
}

function jsonContent(schema: object): object {
  return { "application/json": { schema } };
}

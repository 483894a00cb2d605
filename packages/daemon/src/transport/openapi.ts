// The local API described by its own route tables, so that the description cannot say anything else than the server
// checks; what routes answer is in answers.ts.
import { componentSchemas } from "./answer-schemas.ts";
import { chapters, type RouteAnswers, routeAnswers } from "./answers.ts";
import type { RouteFacts } from "./route.ts";

type Schema = { readonly properties?: Readonly<Record<string, object>>; readonly required?: readonly string[] };

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
      contact: { name: "The maintainers of claudemesh" },
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [
      { url: "/", description: "The daemon that serves this description, on its Unix socket or the loopback." },
    ],
    tags: Object.entries(chapters).map(([name, description]) => ({ name, description })),
    security: [{ localToken: [] }, {}],
    paths,
    components: {
      securitySchemes: { localToken: { type: "http", scheme: "bearer" } },
      schemas: componentSchemas,
      responses: {
        Refused: refusal("The request was refused, and nothing has changed."),
        Failed: refusal("The daemon cannot serve it now; `retryable` says whether the same request may succeed later."),
      },
    },
  };
}

const refusal = (description: string) => ({
  description,
  content: jsonContent({ $ref: "#/components/schemas/Error" }),
});

/** A route without a description is served all the same; a test refuses it. */
const undescribed = ({ method, url }: RouteFacts): RouteAnswers => ({
  operationId: `${method}${url}`.replaceAll(/\W+/g, "_"),
  chapter: "daemon",
  bodies: { 200: {} },
});

function describeRoute(route: RouteFacts): object {
  const { method, url, schema, summary, headers = {} } = route;
  const { operationId, chapter, bodies } = routeAnswers[`${method} ${url}`] ?? undescribed(route);
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
    operationId,
    tags: [chapter],
    summary,
    description: route.unixSocketOnly === true ? `${summary}. Only over the Unix socket.` : `${summary}.`,
    parameters,
    ...(schema.body === undefined ? {} : { requestBody: { content: jsonContent(schema.body) } }),
    responses: {
      ...Object.fromEntries(
        Object.entries(bodies).map(([status, body]) => [status, describeBody(Number(status), body)]),
      ),
      "4XX": { $ref: "#/components/responses/Refused" },
      "5XX": { $ref: "#/components/responses/Failed" },
    },
  };
}

function describeBody(status: number, body: RouteAnswers["bodies"][number]): object {
  const content = typeof body === "string" ? { [body]: { schema: { type: "string" } } } : jsonContent(body);
  return { description: status === 202 ? "Durable here, and on its way" : "Done", content };
}

function parametersIn(location: "path" | "query", schema: Schema | undefined): object[] {
  return Object.entries(schema?.properties ?? {}).map(([name, property]) => ({
    name,
    in: location,
    required: location === "path" || schema?.required?.includes(name) === true,
    schema: property,
  }));
}

function jsonContent(schema: object): object {
  return { "application/json": { schema } };
}

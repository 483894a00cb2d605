// Requests for the daemon's local API, made from its own description: some as the schemas want them, some bent in one
// place, some that are hardly requests. Ids that were used before come up again, so that handlers find something.
import type { Random } from "./seed.ts";

type Schema = {
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly minItems?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
};

type Parameter = { readonly name: string; readonly in: string; readonly required?: boolean; readonly schema: Schema };

export type ApiRoute = {
  readonly method: string;
  readonly path: string;
  readonly parameters: readonly Parameter[];
  readonly body: Schema | undefined;
};

export type ApiRequest = {
  readonly route: string;
  readonly method: string;
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array | undefined;
};

type Description = {
  readonly paths: Record<
    string,
    Record<
      string,
      {
        readonly parameters: readonly Parameter[];
        readonly requestBody?: { readonly content: Record<string, { readonly schema: Schema }> };
      }
    >
  >;
};

export function readRoutes(description: unknown): ApiRoute[] {
  return Object.entries((description as Description).paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { parameters, requestBody }]) => ({
      method: method.toUpperCase(),
      path,
      parameters,
      body: requestBody?.content["application/json"]?.schema,
    })),
  );
}

/** What a fuzz run knows of the mesh that it runs in. */
export type Known = {
  readonly topics: readonly string[];
  readonly queues: readonly string[];
  readonly members: readonly string[];
  readonly clientIds: string[];
  readonly brokerIds: string[];
};

const hex = (random: Random, digits: number) =>
  Array.from({ length: digits }, () => random.below(16).toString(16)).join("");
const uuid = (random: Random) =>
  `${hex(random, 8)}-${hex(random, 4)}-7${hex(random, 3)}-8${hex(random, 3)}-${hex(random, 12)}`;
const ulid = (random: Random) =>
  `01${Array.from({ length: 24 }, () => random.pick([..."0123456789ABCDEFGHJKMNPQRSTVWXYZ"])).join("")}`;
const words = ["build", "green", "42", "ünï", "日本", "a\tb", "'; DROP TABLE outbox; --", "%s%n", "\u202e", "😀", ""];
const text = (random: Random, most = 12) =>
  Array.from({ length: random.below(most) }, () => random.pick(words)).join(" ");

/** By the field's name, since a schema says how long a text is and not what it is for. */
function meaningful(name: string, known: Known, random: Random): unknown {
  const id = () =>
    random.below(4) === 0 ? ulid(random) : random.pick([...known.clientIds, ...known.brokerIds, "none"]);
  const makers: Readonly<Record<string, () => unknown>> = {
    to: () =>
      random.pick([
        "@self",
        ...known.topics.flatMap((topic) => [`#${topic}`, `topic:${topic}`]),
        ...known.queues.map((queue) => `queue:${queue}`),
        ...known.members.map((key) => `dm:${key}`),
      ]),
    topic: () => random.pick(known.topics),
    from: () => random.pick(["@self", "alice", ...known.members]),
    id,
    pubkey: () => random.pick(known.members),
    client_message_id: () => newClientId(known, random),
    new_client_id: () => newClientId(known, random),
    message: () => text(random, random.below(50) === 0 ? 2_000 : 12),
    message_base64: () => Buffer.from(hex(random, 2 * random.below(64)), "hex").toString("base64"),
    meta: () => ({ run: random.below(100), [text(random, 3)]: [text(random), null, { deep: random.next() }] }),
    reply_to_id: () => random.pick([...known.brokerIds, uuid(random)]),
    limit: () => String(1 + random.below(50)),
    reader: () => random.pick(["worker", "agent-1"]),
    cursor: () => ulid(random),
    after: () => String(random.below(1_000)),
    since: () => random.pick(["0", String(Date.now()), "2026-01-31T12:00:00Z", "2026-01-31"]),
    q: () => random.pick(["build", "gre*", "build green", '"42"', "NEAR(", "*", "ünï"]),
    last_event_id: () => `${ulid(random)}.${random.below(1_000_000)}`,
    lease_request_id: () => `worker-${random.below(1_000)}`,
    lease_token: () => uuid(random),
    broker_message_ids: () => [random.pick([...known.brokerIds, uuid(random)])],
    older_than_days: () => random.pick([0, 1, 30, 36_500]),
  };
  return makers[name]?.();
}

function newClientId(known: Known, random: Random): string {
  const id = random.below(4) === 0 ? random.pick([...known.clientIds, "again"]) : `fuzz-${hex(random, 12)}`;
  if (known.clientIds.length < 500) known.clientIds.push(id);
  else known.clientIds[random.below(500)] = id;
  return id;
}

/** A value that the schema accepts. */
function fitting(name: string, schema: Schema, known: Known, random: Random): unknown {
  const type = typeof schema.type === "object" ? random.pick(schema.type) : schema.type;
  if (type === "null") return null;
  if (schema.enum !== undefined) return random.pick(schema.enum);
  if (type === "object" && schema.properties !== undefined) return fittingObject(schema, known, random);
  const meant = meaningful(name, known, random);
  // The same name stands for a text in a query and for a number in a body.
  if (meant !== undefined) return type === "integer" && typeof meant === "string" ? Number(meant) : meant;
  if (type === "array") {
    const length = (schema.minItems ?? 0) + random.below(3);
    return Array.from({ length }, () => fitting("", schema.items ?? {}, known, random));
  }
  if (type === "integer")
    return (schema.minimum ?? 0) + random.below(Math.min(60, (schema.maximum ?? 60) - (schema.minimum ?? 0)));
  if (type === "boolean") return random.below(2) === 0;
  return type === "object"
    ? {}
    : text(random)
        .slice(0, schema.maxLength ?? 64)
        .padEnd(schema.minLength ?? 0, "x");
}

function fittingObject(schema: Schema, known: Known, random: Random): Record<string, unknown> {
  const value: Record<string, unknown> = {};
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const isWanted = schema.required?.includes(name) === true || random.below(3) === 0;
    if (isWanted) value[name] = fitting(name, property, known, random);
  }
  // A send has exactly one of the two, which no schema here says; a patch at least one field.
  const isContent = "message" in (schema.properties ?? {});
  if (isContent && "message" in value) delete value.message_base64;
  else if (isContent && !("message_base64" in value)) value.message = text(random);
  return value;
}

const odd = (random: Random): unknown =>
  random.pick<unknown>([
    null,
    true,
    -1,
    1e308,
    2 ** 53,
    "",
    "\u0000",
    "a\u0000b",
    "\ud800",
    "x".repeat(random.below(100_000)),
    [],
    {},
    [[[[[]]]]],
    Object.fromEntries([
      ["__proto__", 1],
      ["constructor", {}],
    ]),
    "../../etc/passwd",
    "%00",
    "__proto__",
  ]);

function oddText(random: Random): string {
  const value = odd(random);
  return (typeof value === "string" ? value : JSON.stringify(value)).slice(0, 4_000).toWellFormed();
}

/** One thing is wrong with it, most of the time. */
function bend(value: Record<string, unknown>, random: Random): unknown {
  const names = Object.keys(value);
  const bent = { ...value };
  switch (random.below(5)) {
    case 0:
      bent[names.length === 0 ? "x" : random.pick(names)] = odd(random);
      return bent;
    case 1:
      if (names.length > 0) delete bent[random.pick(names)];
      return bent;
    case 2:
      return Object.fromEntries([
        ...Object.entries(value),
        [random.pick(["ttl", "__proto__", "TO", "toString", ""]), odd(random)],
      ]);
    case 3:
      return odd(random);
    default:
      return [value];
  }
}

const encode = (value: unknown) => Buffer.from(JSON.stringify(value) ?? "");

/** JSON that was cut, doubled or sprinkled with bytes. */
function spoil(json: Buffer, random: Random): Buffer {
  const at = random.below(json.length + 1);
  switch (random.below(5)) {
    case 0:
      return json.subarray(0, at);
    case 1:
      return Buffer.concat([json, json]);
    case 2:
      return Buffer.concat([json.subarray(0, at), Buffer.from([random.below(256), 0xc3, 0x28]), json.subarray(at)]);
    case 3:
      return Buffer.from("[".repeat(1 + random.below(50_000)));
    default:
      return Buffer.from(hex(random, 2 * random.below(2_000)), "hex");
  }
}

export type Kind = "fitting" | "bent" | "spoilt";

export function makeRequest(route: ApiRoute, kind: Kind, known: Known, random: Random): ApiRequest {
  const isBent = kind === "bent";
  const value = (parameter: Parameter) => {
    const fit = String(fitting(parameter.name, parameter.schema, known, random));
    return isBent && random.below(2) === 0 ? oddText(random) : fit;
  };
  const named = (location: string) => route.parameters.filter((parameter) => parameter.in === location);
  let target = route.path;
  for (const parameter of named("path")) {
    const isQueue = route.path.startsWith("/v1/queue/") && !isBent;
    const part = isQueue ? random.pick(known.queues) : value(parameter);
    target = target.replace(`{${parameter.name}}`, encodeURIComponent(part || "x"));
  }
  const query = new URLSearchParams();
  for (const parameter of named("query")) {
    if (parameter.required === true || random.below(3) === 0) query.append(parameter.name, value(parameter));
  }
  if (isBent && random.below(4) === 0) query.append(random.pick(["limt", "limit", "token", "a[b]"]), text(random));
  const headers: Record<string, string> = {};
  for (const parameter of named("header")) {
    if (random.below(6) === 0) headers[parameter.name] = isBent ? `"${hex(random, 200)}` : ulid(random);
  }
  const search = query.size === 0 ? "" : `?${query}`;
  const body = route.body === undefined ? undefined : makeBody(route.body, kind, known, random);
  if (body !== undefined)
    headers["content-type"] = isBent && random.below(10) === 0 ? "text/plain" : "application/json";
  return { route: `${route.method} ${route.path}`, method: route.method, target: target + search, headers, body };
}

function makeBody(schema: Schema, kind: Kind, known: Known, random: Random): Buffer {
  const { type, ...rest } = schema;
  const value = fitting("", { ...rest, type: typeof type === "object" ? "object" : (type ?? "object") }, known, random);
  if (kind === "fitting") return encode(value);
  return kind === "bent" ? encode(bend(value as Record<string, unknown>, random)) : spoil(encode(value), random);
}

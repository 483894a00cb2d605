// The messages suites call meshes and messages by short names; on PostgreSQL both are uuids. A name is spelt in the
// bytes of one, so that the same name is the same uuid everywhere and can be read back.
import assert from "node:assert/strict";

const namePattern = /^(mesh|broker)-[\x21-\x7e]*$/;
const uuidPattern = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export function uuidOf(name: string): string {
  const bytes = Buffer.from(name);
  assert(bytes.length <= 16, `${name} is too long for a uuid`);
  const hex = bytes.toString("hex").padEnd(32, "0");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

function nameOf(uuid: string): string {
  return Buffer.from(uuid.replaceAll("-", ""), "hex").toString().replace(/\0+$/, "");
}

/** SQL that speaks of meshes and messages by name, as the server must hear it. */
export function withUuids(sql: string): string {
  return sql.replaceAll(/'((?:mesh|broker)-[^']*)'/g, (_, name: string) => `'${uuidOf(name)}'`);
}

/** The same store, spoken to and answering by name. */
export function speakByName<Store extends object>(store: Store): Store {
  const wrap = (value: unknown): unknown => {
    if (typeof value === "function") {
      return async (...args: unknown[]) =>
        toNames(await (value as (...given: unknown[]) => unknown)(...args.map(toUuids)));
    }
    return mapValues(value, wrap);
  };
  return wrap(store) as Store;
}

function toUuids(value: unknown): unknown {
  if (typeof value === "string") return namePattern.test(value) ? uuidOf(value) : value;
  return mapValues(value, toUuids);
}

function toNames(value: unknown): unknown {
  if (typeof value === "string") {
    const name = uuidPattern.test(value) ? nameOf(value) : value;
    return namePattern.test(name) ? name : value;
  }
  return mapValues(value, toNames);
}

/** Of plain objects, arrays and maps; everything else is passed on as it is. */
function mapValues(value: unknown, map: (value: unknown) => unknown): unknown {
  if (Array.isArray(value)) return value.map(map);
  if (value instanceof Map) return new Map([...value].map(([key, item]) => [map(key), map(item)]));
  if (typeof value !== "object" || value === null || Object.getPrototypeOf(value) !== Object.prototype) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, map(item)]));
}

// The messages suites call meshes and messages by short names; on PostgreSQL both are uuids. The same name is the same
// uuid everywhere, and a test can read the name back.
import { hash } from "node:crypto";

const namePattern = /^(mesh|broker)-[\x21-\x7e]*$/;

export function uuidOf(name: string): string {
  const digest = hash("sha256", name, "hex").slice(0, 32);
  return digest.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

export class NamedIds {
  readonly #names = new Map<string, string>();

  #uuidOf(name: string): string {
    const uuid = uuidOf(name);
    this.#names.set(uuid, name);
    return uuid;
  }

  /** SQL that speaks of meshes and messages by name, as the server must hear it. */
  withUuids(sql: string): string {
    return sql.replaceAll(/'((?:mesh|broker)-[^']*)'/g, (_, name: string) => `'${this.#uuidOf(name)}'`);
  }

  /** The same store, spoken to and answering by name. */
  speakByName<Store extends object>(store: Store): Store {
    const toUuids = (value: unknown): unknown => {
      if (typeof value === "string") return namePattern.test(value) ? this.#uuidOf(value) : value;
      return mapValues(value, toUuids);
    };
    const toNames = (value: unknown): unknown => {
      if (typeof value === "string") return this.#names.get(value) ?? value;
      return mapValues(value, toNames);
    };
    const wrap = (value: unknown): unknown => {
      if (typeof value !== "function") return mapValues(value, wrap);
      const asked = value as (...given: unknown[]) => unknown;
      return async (...args: unknown[]) => toNames(await asked(...args.map(toUuids)));
    };
    return wrap(store) as Store;
  }
}

/** Of plain objects, arrays and maps; everything else is passed on as it is. */
function mapValues(value: unknown, map: (value: unknown) => unknown): unknown {
  if (Array.isArray(value)) return value.map(map);
  if (value instanceof Map) return new Map([...value].map(([key, item]) => [map(key), map(item)]));
  if (typeof value !== "object" || value === null || Object.getPrototypeOf(value) !== Object.prototype) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, map(item)]));
}

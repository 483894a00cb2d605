// What an owner can set for a whole mesh: each key with its valid values, its default and its meaning. A new key is one
// entry here; the route, the frame, the command, their help and the stored value follow from it.
// Why: docs/decisions/0131.
import { MeshError } from "../errors/errors.ts";

export const dmPolicies = ["sealed", "any"] as const;
export type DmPolicy = (typeof dmPolicies)[number];

type Choice = {
  readonly type: "choice";
  readonly values: readonly string[];
  readonly fallback: string;
  readonly meaning: string;
};

type Count = {
  readonly type: "count";
  readonly fallback: number;
  /** The most that an owner may set, unless the broker's operator allows more or less. */
  readonly ceiling: number;
  readonly meaning: string;
};

export type MeshSettingSpec = Choice | Count;

const cap = (fallback: number, ceiling: number, meaning: string): Count => ({
  type: "count",
  fallback,
  ceiling,
  meaning,
});

export const meshSettingSpecs = {
  dm_policy: {
    type: "choice",
    values: dmPolicies,
    fallback: "sealed",
    meaning: "sealed: a direct message that is not sealed is refused; any: it is accepted",
  },
  max_topics: cap(10_000, 1_000_000, "topics of the mesh"),
  max_queues: cap(10_000, 1_000_000, "queues of the mesh"),
  max_spaces: cap(10_000, 1_000_000, "spaces of the mesh"),
  max_sessions: cap(100_000, 1_000_000, "sessions that the mesh's spaces keep"),
  max_tokens: cap(10_000, 1_000_000, "bearer tokens of the mesh that are not revoked"),
  max_invites: cap(10_000, 1_000_000, "invites of the mesh that can still be used"),
  max_webhooks: cap(100, 1_000, "webhooks of the mesh"),
} as const satisfies Readonly<Record<string, MeshSettingSpec>>;

export type MeshSettingKey = keyof typeof meshSettingSpecs;
export type MeshCountKey = {
  [Key in MeshSettingKey]: (typeof meshSettingSpecs)[Key]["type"] extends "count" ? Key : never;
}[MeshSettingKey];

export type MeshSettings = { readonly dm_policy: DmPolicy } & { readonly [Key in MeshCountKey]: number };

export const meshSettingKeys = Object.keys(meshSettingSpecs) as MeshSettingKey[];
export const meshCountKeys = meshSettingKeys.filter(
  (key): key is MeshCountKey => meshSettingSpecs[key].type === "count",
);

export function isMeshSettingKey(text: string): text is MeshSettingKey {
  return Object.hasOwn(meshSettingSpecs, text);
}

/** The largest values that the operator allows owners to set; a key that is not named keeps its own ceiling. */
export type MeshCeilings = { readonly [Key in MeshCountKey]?: number };

export function ceilingOf(key: MeshCountKey, ceilings: MeshCeilings): number {
  return ceilings[key] ?? meshSettingSpecs[key].ceiling;
}

/** The value in force where the owner has set nothing. */
export function defaultOf(key: MeshSettingKey, ceilings: MeshCeilings): string | number {
  const spec: MeshSettingSpec = meshSettingSpecs[key];
  return spec.type === "choice" ? spec.fallback : Math.min(spec.fallback, ceilingOf(key as MeshCountKey, ceilings));
}

/** Checks the value that an owner asks for; throws where it is not valid for the key. */
export function checkMeshSetting(key: MeshSettingKey, value: string | number, ceilings: MeshCeilings): string | number {
  const spec: MeshSettingSpec = meshSettingSpecs[key];
  if (spec.type === "choice") {
    if (typeof value === "string" && spec.values.includes(value)) return value;
    throw new MeshError("invalid_request", `${key} is ${spec.values.join(" or ")}.`, { field: "value" });
  }
  const ceiling = ceilingOf(key as MeshCountKey, ceilings);
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0 && value <= ceiling) return value;
  const message = `${key} is an integer from 0 to ${ceiling}; the broker's operator can allow more.`;
  throw new MeshError("invalid_request", message, { field: "value", limit: ceiling });
}

/**
 * The settings in force, from the stored texts. A text of a later version that is not understood here counts as not
 * set, and a number above a ceiling that was lowered since counts as the ceiling.
 */
export function effectiveSettings(stored: ReadonlyMap<string, string>, ceilings: MeshCeilings): MeshSettings {
  const entries = meshSettingKeys.map((key) => [key, effectiveValue(key, stored.get(key), ceilings)]);
  return Object.fromEntries(entries) as MeshSettings;
}

function effectiveValue(key: MeshSettingKey, text: string | undefined, ceilings: MeshCeilings): string | number {
  const spec: MeshSettingSpec = meshSettingSpecs[key];
  if (text === undefined) return defaultOf(key, ceilings);
  if (spec.type === "choice") return spec.values.includes(text) ? text : spec.fallback;
  const number = /^[0-9]{1,15}$/.test(text) ? Number(text) : undefined;
  return number === undefined ? defaultOf(key, ceilings) : Math.min(number, ceilingOf(key as MeshCountKey, ceilings));
}

// What owners set for their mesh, and the values in force. They are read from the store and cached for less than a
// second, so that code which depends on a setting may ask at every request while the store is asked at most once a
// second.
// Why: docs/decisions/0131.
import { MeshError } from "@claudemesh/protocol/errors";
import {
  ceilingOf,
  checkMeshSetting,
  defaultOf,
  effectiveSettings,
  isMeshSettingKey,
  type MeshCeilings,
  type MeshCountKey,
  type MeshSettingKey,
  type MeshSettings,
  meshSettingKeys,
  meshSettingSpecs,
} from "@claudemesh/protocol/messages/mesh-settings";
import { ownerOnly } from "../core/require-owner.ts";
import type { MembersStore, PlainMember, SettingRecord } from "../ports.ts";

/** Less than the second within which a change takes effect on every broker. */
const cachedMs = 900;
/** The number of meshes whose settings are cached; beyond it the oldest entry is dropped. */
const meshesMax = 4_096;

export type MeshSettingsPorts = {
  readonly store: Pick<MembersStore, "listSettings" | "changeSetting">;
  readonly nowMs: () => number;
  readonly ceilings: MeshCeilings;
};

export type ShownSetting = {
  readonly key: MeshSettingKey;
  readonly value: string | number;
  readonly fallback: string | number;
  /** The largest value that an owner may set; undefined where the value is no number. */
  readonly maximum: number | undefined;
  readonly meaning: string;
  /** When and by which owner it was set; undefined where no owner has set it. */
  readonly set: Pick<SettingRecord, "setBy" | "setAt"> | undefined;
};

type CachedSettings = { readonly atMs: number; readonly settings: Promise<MeshSettings> };

export class MeshSettingsService {
  readonly #ports: MeshSettingsPorts;
  readonly #cache = new Map<string, CachedSettings>();

  constructor(ports: MeshSettingsPorts) {
    this.#ports = ports;
  }

  /** The settings in force for the mesh, now or at some time within the last second. */
  of(meshId: string): Promise<MeshSettings> {
    const { store, nowMs, ceilings } = this.#ports;
    const now = nowMs();
    const cached = this.#cache.get(meshId);
    if (cached !== undefined && now >= cached.atMs && now - cached.atMs < cachedMs) return cached.settings;
    const settings = store.listSettings(meshId).then((records) => effectiveSettings(textsOf(records), ceilings));
    this.#keep(meshId, { atMs: now, settings });
    return settings;
  }

  /** Whether the mesh accepts direct messages that are not sealed. */
  readonly takesUnsealed = async (meshId: string): Promise<boolean> => (await this.of(meshId)).dm_policy === "any";

  /** All keys in the order of their table, as the store has them now. */
  async list(meshId: string): Promise<ShownSetting[]> {
    const { store, ceilings } = this.#ports;
    const records = new Map((await store.listSettings(meshId)).map((record) => [record.key, record]));
    const settings = effectiveSettings(textsOf([...records.values()]), ceilings);
    return meshSettingKeys.map((key) => ({
      key,
      value: settings[key],
      fallback: defaultOf(key, ceilings),
      maximum: meshSettingSpecs[key].type === "count" ? ceilingOf(key as MeshCountKey, ceilings) : undefined,
      meaning: meshSettingSpecs[key].meaning,
      set: records.get(key),
    }));
  }

  /** Null returns the key to its default. Answers with the value that is in force from now on. */
  async set(owner: PlainMember, key: string, value: string | number | null): Promise<string | number> {
    const { store, nowMs, ceilings } = this.#ports;
    if (!isMeshSettingKey(key)) {
      const message = `There is no setting ${JSON.stringify(key)}; there are ${meshSettingKeys.join(", ")}.`;
      throw new MeshError("invalid_request", message, { field: "key" });
    }
    const checked = value === null ? undefined : checkMeshSetting(key, value, ceilings);
    const setting = { key, value: checked === undefined ? undefined : String(checked) };
    const changed = await store.changeSetting(owner.meshId, owner.pubkey, setting, nowMs());
    if (!changed) throw ownerOnly("change a mesh's settings");
    this.#cache.delete(owner.meshId);
    return checked ?? defaultOf(key, ceilings);
  }

  #keep(meshId: string, cached: CachedSettings): void {
    this.#cache.delete(meshId);
    this.#cache.set(meshId, cached);
    // A failed read is not cached: the next call asks the store again.
    cached.settings.catch(() => {
      if (this.#cache.get(meshId) === cached) this.#cache.delete(meshId);
    });
    if (this.#cache.size <= meshesMax) return;
    for (const oldest of this.#cache.keys()) {
      this.#cache.delete(oldest);
      return;
    }
  }
}

function textsOf(records: readonly SettingRecord[]): Map<string, string> {
  return new Map(records.map(({ key, value }) => [key, value]));
}

// What owners set for their mesh: every member reads it, an owner changes it.
import type { ShownSetting } from "@claudemesh/members/services/mesh-settings";
import type { EmptyInput, MeshSetInput } from "@claudemesh/protocol/wire/operations";
import { type Handlers, ok } from "./handler.ts";

export const settingHandlers = {
  "mesh.settings": async (broker, { member }, _input: EmptyInput) =>
    ok({ items: (await broker.settings.list(member.meshId)).map(settingBody) }),

  "mesh.set": async (broker, { member }, { key, value }: MeshSetInput) =>
    ok({ key, value: await broker.settings.set(member, key, value) }),
} satisfies Handlers;

function settingBody({ key, value, fallback, maximum, meaning, set }: ShownSetting): Record<string, unknown> {
  return {
    key,
    value,
    default: fallback,
    maximum: maximum ?? null,
    meaning,
    set_by: set?.setBy ?? null,
    set_at: set?.setAt ?? null,
  };
}

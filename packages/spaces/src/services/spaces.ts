// Making and listing spaces, and forgetting sessions that nobody uses.
import { MeshError } from "@claudemesh/protocol/errors";
import { isName } from "@claudemesh/protocol/messages/names";
import { sessionUnusedMs } from "../core/session.ts";
import type { SignedWrites, SpaceRef, SpaceRow, SpaceSettings } from "../ports/rows.ts";
import type { SpacePorts, SpacesStore } from "../ports.ts";

export async function createSpace(
  ports: Pick<SpacePorts, "store" | "nowMs">,
  space: SpaceRef,
  settings: SpaceSettings,
): Promise<"created" | "exists"> {
  if (!isName(space.spaceId)) throw new MeshError("invalid_name", undefined, { field: "name" });
  const outcome = await ports.store.createSpace(space, settings, ports.nowMs());
  if (outcome === "different") throw new MeshError("exists_with_other_content", undefined, { name: space.spaceId });
  return outcome;
}

export function listSpaces(
  ports: Pick<SpacePorts, "store">,
  meshId: string,
  after: string,
  limit: number,
): Promise<SpaceRow[]> {
  return ports.store.listSpaces(meshId, after, limit);
}

/** Whether the space takes unsigned commits; who may say so is the caller's to know. */
export async function setSignedWrites(
  ports: Pick<SpacePorts, "store">,
  space: SpaceRef,
  signedWrites: SignedWrites,
): Promise<void> {
  if (!(await ports.store.setSignedWrites(space, signedWrites))) throw new MeshError("space_not_found");
}

/** In steps that are short enough not to hold up commits. */
export async function sweepSessions(
  ports: Pick<SpacePorts, "nowMs"> & { readonly store: Pick<SpacesStore, "sweepSessions"> },
): Promise<number> {
  const perStep = 1_000;
  let swept = 0;
  for (;;) {
    const step = await ports.store.sweepSessions(ports.nowMs() - sessionUnusedMs, perStep);
    swept += step;
    if (step < perStep) return swept;
  }
}

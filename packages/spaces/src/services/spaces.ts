// Making and listing spaces, and forgetting sessions that are not used.
import { MeshError } from "@claudemesh/protocol/errors";
import { isName } from "@claudemesh/protocol/messages/names";
import { sessionUnusedMs } from "../core/session.ts";
import type { SessionCursor, SignedWrites, SpaceRef, SpaceRow, SpaceSettings } from "../ports/rows.ts";
import type { SessionSweepStep, SpacePorts, SpacesStore } from "../ports.ts";

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

/** Whether the space takes unsigned commits. The caller has checked that the member may decide this. */
export async function setSignedWrites(
  ports: Pick<SpacePorts, "store">,
  space: SpaceRef,
  signedWrites: SignedWrites,
): Promise<void> {
  if (!(await ports.store.setSignedWrites(space, signedWrites))) throw new MeshError("space_not_found");
}

type SessionSweepPorts = Pick<SpacePorts, "nowMs"> & { readonly store: Pick<SpacesStore, "sweepSessions"> };

/** Yields how many each step has forgotten; its runner rests in between. Each session is looked at. */
export async function* sweepSessions({ store, nowMs }: SessionSweepPorts): AsyncGenerator<number, void> {
  let after: SessionCursor | undefined;
  let more = true;
  while (more) {
    const step: SessionSweepStep = await store.sweepSessions(nowMs() - sessionUnusedMs, after);
    yield step.removed;
    after = step.next;
    more = step.more;
  }
}

/** From beginning to end, without a rest. */
export async function sweepAllSessions(ports: SessionSweepPorts): Promise<number> {
  let swept = 0;
  for await (const removed of sweepSessions(ports)) swept += removed;
  return swept;
}

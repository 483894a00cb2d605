// What must be true of the space, of its replicas, of registrations and of once when everything has come to rest.
import type { EntityDocument } from "@claudemesh/protocol/spaces/entity";
import { fabricEqual } from "@claudemesh/protocol/spaces/fabric-value";
import { readMany } from "@claudemesh/spaces/services/query";
import { entityIds } from "../../../../tests/support/random-space-work.ts";
import { spaceName } from "../core/plan.ts";
import type { AgentActor } from "../world/agent.ts";
import type { BrokerActor } from "../world/broker.ts";
import type { World } from "../world/world.ts";
import type { MeshWatch } from "./mesh-watch.ts";
import { Violation } from "./violation.ts";

type Documents = ReadonlyMap<string, EntityDocument>;

/** Undefined where every agent shows what is there and no commit or registration waits for its outcome. */
export function describeUnsettled(world: World, watch: MeshWatch): string | undefined {
  const truth = watch.spaces.model.stateAt("", watch.spaces.model.lastSeq);
  for (const agent of world.agents) {
    const problem = problemOf(agent, truth);
    if (problem !== undefined) return `${agent.host.name}: ${problem}`;
  }
  const inert = watch.registrar.consumedKeys.find((key) => watch.registrar.stateOf(key) === "inert");
  if (inert !== undefined) return `${inert} is registered and not verified`;
  const nowMs = furthestNowMs(world);
  const running = watch.once.keys.find((key) => {
    const newest = watch.once.newestOf(key);
    return newest !== undefined && newest.settlement === undefined && newest.leaseUntilMs > nowMs;
  });
  return running === undefined ? undefined : `the lease of ${running} goes on and no agent runs it`;
}

/** A lease that was given by a clock that was ahead ends when the others have come there. */
function furthestNowMs({ brokers }: World): number {
  const [{ host }] = brokers as [BrokerActor];
  return host.wallMs() - host.skewMs + Math.max(...brokers.map((broker) => broker.host.furthestMs));
}

function problemOf({ process }: AgentActor, truth: Documents): string | undefined {
  const space = process?.space;
  if (process === undefined || !process.isOnline) return "it is not connected";
  if (space === undefined) return "the space was never opened";
  if (space.pending > 0) return `${space.pending} commits have no verdict`;
  for (const id of entityIds) {
    if (!fabricEqual(space.peek(id), truth.get(id))) return `its replica shows another ${id} than was accepted`;
    if (process.shown.has(id) && !fabricEqual(process.shown.get(id), truth.get(id))) {
      return `its subscribers were notified of another ${id} than was accepted`;
    }
  }
  return undefined;
}

/** What the broker holds is what was accepted makes, on every branch, now and at some time in the past. */
export async function checkSpace(world: World, watch: MeshWatch): Promise<void> {
  const { model } = watch.spaces;
  if (model.lastSeq === 0) return;
  const { spaces } = world.broker.context;
  const space = { meshId: world.broker.mesh.id, spaceId: spaceName };
  for (const branch of model.branches) {
    for (const atSeq of [model.lastSeq, world.broker.host.random.below(model.lastSeq + 1)]) {
      const { items } = await readMany(spaces, space, entityIds, { branch, atSeq });
      checkDocuments(new Map(items.map(({ id, document }) => [id, document])), model.stateAt(branch, atSeq), () =>
        branch === "" ? `the space at ${atSeq}` : `branch ${branch} at ${atSeq}`,
      );
    }
  }
}

export function checkDocuments(
  found: ReadonlyMap<string, EntityDocument | undefined>,
  truth: Documents,
  where: () => string,
): void {
  for (const id of entityIds) {
    if (fabricEqual(found.get(id), truth.get(id))) continue;
    throw new Violation("state_wrong", `${id} in ${where()} is not what was accepted`);
  }
}

export function checkRegistrarAndOnce(watch: MeshWatch): void {
  watch.registrar.checkAudit(watch.countAudited());
  watch.once.check();
}

// Spaces: one handler for each operation, which calls the service and shapes the answer. Documents leave in their JSON
// form. Sessions, validation, branches and history are the spaces package's.
// Why: docs/decisions/0043.
import { requireOwner } from "@claudemesh/members/require-owner";
import { MeshError } from "@claudemesh/protocol/errors";
import { type Answer, answerError } from "@claudemesh/protocol/messages/accept-result";
import { readBranchId } from "@claudemesh/protocol/spaces/entity";
import { encodeMergePlan } from "@claudemesh/protocol/spaces/merge";
import {
  type BranchCreateInput,
  type BranchDeleteInput,
  type BranchListInput,
  type CommitInput,
  type DiffInput,
  type EntityInput,
  type InvocationInput,
  type LogInput,
  type MergeProposeInput,
  type QueryInput,
  readLogCursor,
  readQuery,
  readResolutions,
  type SessionOpenInput,
  type SpaceCreateInput,
  type SpaceListInput,
  type SpacePolicyInput,
  type VerdictInput,
  type WatchInput,
} from "@claudemesh/protocol/spaces/wire-inputs";
import { Watched } from "@claudemesh/spaces/core/watched";
import type { SpacePorts } from "@claudemesh/spaces/ports";
import type { Branch, SpaceRef, SpaceRow } from "@claudemesh/spaces/ports/rows";
import { createBranch, deleteBranch } from "@claudemesh/spaces/services/branches";
import { commitToSpace, type Verdict } from "@claudemesh/spaces/services/commit/commit";
import { diffBranches, proposeMerge } from "@claudemesh/spaces/services/merges";
import { openSession } from "@claudemesh/spaces/services/open-session";
import { findInvocation, findVerdict, listBranches, readEntity, readLog } from "@claudemesh/spaces/services/query";
import { createSpace, listSpaces, setSignedWrites } from "@claudemesh/spaces/services/spaces";
import type { BrokerContext } from "../context.ts";
import { type Caller, checkName, type Handlers, ok, pageLimit } from "./handler.ts";
import { admitCreation } from "./mesh-caps.ts";
import { changesSince, entityBody, queryPage } from "./space-pages.ts";

export const spaceHandlers = {
  "space.create": async (broker, { member }, input: SpaceCreateInput) => {
    const space = { meshId: member.meshId, spaceId: checkName(input.name, "name") };
    const stored = await broker.spaces.store.read(space, (view) => view.findSpace());
    if (stored === undefined) await admitCreation(broker, member.meshId, "spaces", input.name);
    const outcome = await createSpace(broker.spaces, space, { createdBy: member.pubkey });
    return { status: outcome === "created" ? 201 : 200, body: spaceBody(await findSpace(broker, space)) };
  },

  "space.list": async (broker, { member }, input: SpaceListInput) => {
    const limit = pageLimit(input);
    const rows = await listSpaces(broker.spaces, member.meshId, input.after ?? "", limit);
    return ok({ items: rows.map(spaceBody), nextCursor: rows.length < limit ? null : (rows.at(-1)?.spaceId ?? null) });
  },

  "space.policy": async (broker, caller, input: SpacePolicyInput) => {
    requireOwner(caller.member, "set a space's policy");
    const space = spaceOf(caller, input);
    await setSignedWrites(broker.spaces, space, input.signedWrites);
    return ok(spaceBody(await findSpace(broker, space)));
  },

  "space.open": async (broker, caller, input: SessionOpenInput) => {
    const { seenSeq, sessionId } = input;
    const space = spaceOf(caller, input);
    const { pubkey } = caller.member;
    await refuseFutureSeq(broker, space, seenSeq);
    const full = sessionId === undefined ? await broker.caps.refusalOf(space.meshId, "sessions") : undefined;
    const open = () => openSession(broker.spaces, space, pubkey, input, full);
    const opened = await (caller.sessions === undefined
      ? open()
      : caller.sessions.open(space, pubkey, sessionId, open));
    const { epoch: _, ...answer } = opened;
    // On a socket what is newer comes as frames, for what is watched; here the answer is all there is.
    const tellsHere = caller.sessions === undefined && seenSeq !== undefined;
    const sync = tellsHere ? await changesSince(portsOf(broker, caller), space, seenSeq, opened) : undefined;
    return ok({ ...answer, ...(sync !== undefined && { sync }) });
  },

  "space.commit": async (broker, caller, input: CommitInput) => {
    const space = spaceOf(caller, input);
    const verdict = await commitToSpace(portsOf(broker, caller), space, caller.member.pubkey, input);
    return answerVerdict(broker, caller, space, input.sessionId, verdict);
  },

  "space.verdict": async (broker, caller, { sessionId, localSeq, ...input }: VerdictInput) => {
    const verdict = await findVerdict(broker.spaces, spaceOf(caller, input), caller.member.pubkey, sessionId, localSeq);
    return verdictAnswer(verdict);
  },

  "space.watch": async (_broker, caller, input: WatchInput) => {
    const { sessionId, sessionToken, ids = [], prefixes = [], seenSeq = 0 } = input;
    if (caller.sessions === undefined) throw new MeshError("invalid_request", "Watching needs a WebSocket.");
    const holder = { memberPubkey: caller.member.pubkey, sessionId, sessionToken };
    const watched = new Watched(ids, prefixes);
    const branch = readBranchId(input.branch);
    return ok({ seq: await caller.sessions.watch(spaceOf(caller, input), holder, branch, watched, seenSeq) });
  },

  "space.entity": async (broker, caller, { entityId, branch, atSeq, ...input }: EntityInput) =>
    ok(entityBody(await readEntity(broker.spaces, spaceOf(caller, input), entityId, { branch, atSeq }))),

  "space.query": async (broker, caller, input: QueryInput) => {
    const { branch, atSeq } = input;
    const ports = portsOf(broker, caller);
    return ok(await queryPage(ports, spaceOf(caller, input), readQuery(input), { branch, atSeq }, pageLimit(input)));
  },

  "space.log": async (broker, caller, input: LogInput) => {
    const start = readLogCursor(input);
    const { items, nextAfter, prevBefore } = await readLog(
      portsOf(broker, caller),
      spaceOf(caller, input),
      start,
      pageLimit(input),
    );
    const forward = { items, nextAfter: nextAfter ?? null };
    // Only a request that begins at the end gets a cursor to the page before.
    return ok("after" in start ? forward : { ...forward, prevBefore: prevBefore ?? null });
  },

  "space.invocation": async (broker, caller, input: InvocationInput) => {
    const space = spaceOf(caller, input);
    const invocation = await findInvocation(broker.spaces, space, input.ref);
    if (invocation === undefined) throw new MeshError("not_found", "Nothing signed has this reference in this space.");
    return ok({ ref: invocation.hash, content: invocation.content });
  },

  "space.branch.create": async (broker, caller, input: BranchCreateInput) => {
    const space = spaceOf(caller, input);
    const verdict = await createBranch(broker.spaces, space, caller.member.pubkey, input);
    return answerVerdict(broker, caller, space, input.sessionId, verdict);
  },

  "space.branch.delete": async (broker, caller, input: BranchDeleteInput) => {
    const space = spaceOf(caller, input);
    const verdict = await deleteBranch(broker.spaces, space, caller.member.pubkey, input);
    return answerVerdict(broker, caller, space, input.sessionId, verdict);
  },

  "space.branches": async (broker, caller, input: BranchListInput) => {
    const limit = pageLimit(input);
    const branches = await listBranches(broker.spaces, spaceOf(caller, input), input.after, limit);
    const items = branches.map(branchBody);
    return ok({ items, nextCursor: branches.length < limit ? null : (branches.at(-1)?.name ?? null) });
  },

  "space.merge.propose": async (broker, caller, { resolutions, ...input }: MergeProposeInput) => {
    const pair = { source: readBranchId(input.source), target: readBranchId(input.target) };
    const plan = await proposeMerge(
      portsOf(broker, caller),
      spaceOf(caller, input),
      pair,
      readResolutions(resolutions),
    );
    return ok({ ...encodeMergePlan(plan) });
  },

  "space.diff": async (broker, caller, input: DiffInput) => {
    const pair = { source: readBranchId(input.source), target: readBranchId(input.target) };
    return ok({ ...(await diffBranches(portsOf(broker, caller), spaceOf(caller, input), pair)) });
  },
} satisfies Handlers;

/** What follows the first part of a large read or commit has turns of its own as well, in which members take turns. */
function portsOf({ spaces, watchers }: BrokerContext, { member: { meshId, pubkey } }: Caller): SpacePorts {
  return { ...spaces, nextTurn: (run) => watchers.nextTurn(meshId, pubkey, run) };
}

function spaceOf({ member }: Caller, input: { readonly space: string }): SpaceRef {
  return { meshId: member.meshId, spaceId: input.space };
}

async function findSpace({ spaces }: BrokerContext, space: SpaceRef): Promise<SpaceRow> {
  const row = await spaces.store.read(space, (view) => view.findSpace());
  if (row === undefined) throw new MeshError("space_not_found");
  return row;
}

async function refuseFutureSeq(broker: BrokerContext, space: SpaceRef, seenSeq: number | undefined): Promise<void> {
  if (seenSeq === undefined) return;
  const { lastSeq } = await findSpace(broker, space);
  if (seenSeq > lastSeq) throw new MeshError("seq_out_of_range", undefined, { field: "seenSeq", seq: lastSeq });
}

async function answerVerdict(
  broker: BrokerContext,
  caller: Caller,
  space: SpaceRef,
  sessionId: string,
  verdict: Verdict,
): Promise<Answer> {
  const fresh = verdict.type === "accepted" ? "accepted" : verdict.error.code;
  broker.metrics.committed(verdict.replayed ? "replayed" : fresh);
  await caller.sessions?.explain(space, sessionId, verdict);
  return verdictAnswer(verdict);
}

/** The same for the commit, its retry, and a later request for the verdict. */
function verdictAnswer(verdict: Verdict): Answer {
  if (verdict.type === "rejected") return answerError(verdict.error);
  const { seq, resolvedPendingReads, replayed } = verdict;
  return ok({ seq, resolvedPendingReads, replayed });
}

function spaceBody({ spaceId, lastSeq, signedWrites, createdBy, createdAtMs }: SpaceRow): Record<string, unknown> {
  return { name: spaceId, seq: lastSeq, signedWrites, createdBy, createdAt: createdAtMs };
}

function branchBody({ name, lineage, createdSeq, deletedSeq }: Branch): Record<string, unknown> {
  const [parent] = lineage;
  return {
    name,
    createdSeq,
    ...(parent !== undefined && { fromBranch: parent.branch, atSeq: parent.upTo }),
    ...(deletedSeq !== undefined && { deleted: true, deletedSeq }),
  };
}

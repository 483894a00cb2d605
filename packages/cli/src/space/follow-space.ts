// Watching a space until the caller stops it: over a link that comes back by itself, each time behind what was given out.
import { randomUUID } from "node:crypto";
import { refusalFrom } from "@claudemesh/client/broker";
import { type MeshPaths, readMeshConfig } from "@claudemesh/client/home";
import { trustOfHome } from "@claudemesh/client/home-trust";
import type { Link, LinkStatus } from "@claudemesh/client/internal/link-contract";
import { identityOf, readKeyFile } from "@claudemesh/client/keys";
import { openLink } from "@claudemesh/client/link";
import { MeshError } from "@claudemesh/protocol/errors";
import type { OperationName } from "@claudemesh/protocol/wire/operations";
import type { SyncPush } from "@claudemesh/protocol/wire/spaces-operations";

export type Follow = {
  readonly space: string;
  readonly branch?: string | undefined;
  readonly ids: readonly string[];
  readonly prefixes: readonly string[];
  /** Without it: what changes from now on. */
  readonly seenSeq?: number | undefined;
};

export type FollowEvents = {
  readonly onFrame: (frame: SyncPush) => void;
  /** All that is newer than what was seen has been given out, up to this seq. */
  readonly onCaughtUp?: (seq: number) => void;
  /** Ends the following. */
  readonly signal: AbortSignal;
};

const requestTimeoutMs = 30_000;

/** Resolves when the signal says so; rejects with a refusal. A broker that is away is waited for. */
export async function followSpace(
  paths: MeshPaths,
  agent: string,
  follow: Follow,
  events: FollowEvents,
): Promise<void> {
  const config = readMeshConfig(paths);
  const ended = Promise.withResolvers<void>();
  let { seenSeq } = follow;
  let link: Link | undefined;
  const ask = async (operation: OperationName, input: object) => {
    const outcome = await link?.request(operation, { space: follow.space, ...input }, { timeoutMs: requestTimeoutMs });
    // What was lost with the connection is asked for again on the next one.
    if (outcome?.type !== "answered") return undefined;
    if (outcome.status >= 300) throw refusalFrom(outcome.status, outcome.body);
    return outcome.body as Readonly<Record<string, unknown>>;
  };
  const begin = async () => {
    const opened = await ask("space.open", { openId: randomUUID() });
    if (opened === undefined) return;
    const { sessionId, sessionToken, seq } = opened;
    seenSeq ??= Number(seq);
    const { ids, prefixes, branch } = follow;
    const watch = { sessionId, sessionToken, ids, prefixes, seenSeq, ...(branch !== undefined && { branch }) };
    const watched = await ask("space.watch", watch);
    if (watched !== undefined) events.onCaughtUp?.(Number(watched.seq));
  };
  link = openLink({
    url: config.broker,
    identity: identityOf(readKeyFile(paths.keypair), config.id),
    kind: "client",
    agent,
    trust: trustOfHome(paths, config),
    onPush: (push) => {
      if (push.type !== "sync") return;
      seenSeq = Math.max(seenSeq ?? 0, push.toSeq);
      events.onFrame(push);
    },
    onStatus: (status) => {
      if (status.state === "online") begin().catch(ended.reject);
      const refusal = refusedBy(status);
      if (refusal !== undefined) ended.reject(refusal);
    },
  });
  events.signal.addEventListener("abort", () => ended.resolve(), { once: true });
  if (events.signal.aborted) ended.resolve();
  try {
    await ended.promise;
  } finally {
    await link.close();
  }
}

/** Waiting would be in vain. */
function refusedBy(status: LinkStatus): MeshError | undefined {
  if (status.state === "offline" && status.reason === "member_revoked") return new MeshError("membership_ended");
  if (status.state === "offline" && status.reason === "unauthorized")
    return new MeshError("unauthorized", status.detail);
  if (status.state === "offline" && status.reason === "not_our_broker") {
    return new MeshError("not_our_broker", `What answers there is not our broker: ${status.detail}.`);
  }
  const isOver = status.state === "stopped" && status.reason !== "closed";
  return isOver ? new MeshError("broker_unreachable", `The broker ended the connection: ${status.detail}`) : undefined;
}

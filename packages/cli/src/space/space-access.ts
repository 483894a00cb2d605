// How commands reach a space: as the member of this home, over one short connection. A write whose answer was lost is
// sent again as it was, and gets the verdict of the first.
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { BrokerCall } from "@claudemesh/client/broker";
import { type MeshPaths, readMeshConfig } from "@claudemesh/client/home";
import { MeshError } from "@claudemesh/protocol/errors";
import { type JsonValue, parseStrictJson, parseStrictJsonText, StrictJsonError } from "@claudemesh/protocol/json";
import type { EncodedCommit } from "@claudemesh/protocol/spaces/commit";
import { maxEncodedDepth } from "@claudemesh/protocol/spaces/fabric-value";
import { type Command, InvalidArgumentError } from "commander";
import { type CommonOptions, withMesh } from "../command.ts";
import { asMember } from "../mesh/member.ts";
import type { Shell } from "../shell.ts";

export type SpaceOptions = CommonOptions & { readonly branch?: string };
export type WriteOptions = SpaceOptions & { readonly ifSeq?: number };

/** As the broker tells it; `document` is in its JSON form. */
export type Entity = {
  readonly id: string;
  readonly seq: number;
  readonly branch?: string;
  readonly document?: JsonValue;
  readonly deleted?: true;
};

export type Accepted = { readonly seq: number; readonly replayed: boolean };

export function withSpace(command: Command): Command {
  return withMesh(command).argument("<space>", "name of the space");
}

export function withBranch(command: Command): Command {
  return command.option("--branch <name>", "which branch (default: main)");
}

export function withCondition(command: Command): Command {
  return withBranch(command).option(
    "--if-seq <seq>",
    "only if nobody has written the entity after this seq; 0: only if it was never written",
    parseSeq,
  );
}

export function parseSeq(text: string): number {
  const seq = /^[0-9]{1,16}$/.test(text) ? Number(text) : Number.NaN;
  if (!Number.isSafeInteger(seq)) throw new InvalidArgumentError("It takes a seq such as 42.");
  return seq;
}

/** The argument's JSON, or that of standard input where it is `-`. */
export function readJson(text: string, what: string): JsonValue {
  const limits = { maxDepth: maxEncodedDepth + 2 };
  try {
    return text === "-" ? parseStrictJson(readFileSync(0), limits) : parseStrictJsonText(text, limits);
  } catch (error) {
    if (!(error instanceof StrictJsonError)) throw error;
    throw new MeshError("invalid_json", `The ${what} cannot be used. ${error.message}`, {}, error);
  }
}

type WriteOperation = "space.commit" | "space.branch.create" | "space.branch.delete";

const triesMax = 5;
const pauseMs = 300;

/** One session for one write: every try opens the same session and sends the same, also of a later call with its openId. */
export async function writeOnce(
  shell: Shell,
  paths: MeshPaths,
  space: string,
  operation: WriteOperation,
  input: object,
  openId: string = randomUUID(),
): Promise<Accepted> {
  let mayBeDone = false;
  for (let tries = 1; ; tries += 1) {
    try {
      return await asMember(shell, paths, async (call) => {
        const opened = (await call("space.open", { space, openId })) as { sessionId: string; sessionToken: string };
        const { sessionId, sessionToken } = opened;
        mayBeDone = true;
        return await signIfAsked(call, paths, operation, { space, sessionId, sessionToken, ...input });
      });
    } catch (error) {
      // Before anything was asked for, the caller decides whether to try again.
      if (!mayBeDone || !(await isPassing(error)) || tries === triesMax) throw error;
      await sleep(pauseMs * tries);
    }
  }
}

/** A space that takes signed writes only says so, and has consumed nothing. */
async function signIfAsked(call: BrokerCall, paths: MeshPaths, operation: WriteOperation, input: object) {
  try {
    return (await call(operation, input)) as Accepted;
  } catch (error) {
    const isAsked = error instanceof MeshError && error.code === "forbidden" && error.details.field === "invocation";
    if (!isAsked) throw error;
    const [{ identityOf, readKeyFile }, { sealOutgoing }, { signInput }] = await Promise.all([
      import("@claudemesh/client/keys"),
      import("@claudemesh/client/internal/outgoing"),
      import("@claudemesh/client/internal/signed-writes"),
    ]);
    const signer = identityOf(readKeyFile(paths.keypair), readMeshConfig(paths).id);
    // What is signed is what leaves, so direct messages are sealed first.
    const sealed = await sealOutgoing(signer, operation, input);
    return (await call(operation, await signInput(signer, operation, sealed))) as Accepted;
  }
}

/** Not an answer to the write, or one that says that nothing was decided. */
async function isPassing(error: unknown): Promise<boolean> {
  if (error instanceof MeshError) return error.retryable && error.code !== "rate_limited";
  const { BrokerRefusal } = await import("@claudemesh/client/broker");
  return error instanceof BrokerRefusal && error.retryable;
}

export function commitOnce(
  shell: Shell,
  paths: MeshPaths,
  space: string,
  commit: Omit<EncodedCommit, "localSeq">,
  openId?: string,
): Promise<Accepted> {
  return writeOnce(shell, paths, space, "space.commit", { commit: { localSeq: 1, ...commit } }, openId);
}

/** One operation on one entity, under the condition that the options name. */
export async function writeEntity(
  shell: Shell,
  paths: MeshPaths,
  space: string,
  operation: EncodedCommit["operations"][number],
  { branch, ifSeq }: WriteOptions,
): Promise<Accepted> {
  const confirmed = ifSeq === undefined ? [] : [{ id: operation.id, path: [], seq: ifSeq }];
  try {
    return await commitOnce(shell, paths, space, {
      reads: { confirmed, pending: [] },
      operations: [operation],
      ...(branch !== undefined && { branch }),
    });
  } catch (error) {
    if (!(error instanceof MeshError && error.code === "conflict_error")) throw error;
    const [conflict] = error.details.conflicts as readonly { readonly actual: { readonly seq: number } }[];
    const message = `${operation.id} is at seq ${conflict?.actual.seq}, and not at ${ifSeq} any more. Nothing was written; look at it with \`claudemesh space get\`.`;
    throw new MeshError(error.code, message, error.details, error);
  }
}

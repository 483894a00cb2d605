// What a member can ask about a space, as entries of the table of operations: frame types, routes and inputs. Also what
// a broker pushes about spaces. The schemas are with the types of spaces.
import { maxEncodedDepth } from "../spaces/fabric-value.ts";
import {
  branchCreateInputSchema,
  branchDeleteInputSchema,
  branchListInputSchema,
  commitInputSchema,
  diffInputSchema,
  entityInputSchema,
  invocationInputSchema,
  logInputSchema,
  mergeProposeInputSchema,
  queryInputSchema,
  sessionOpenInputSchema,
  spaceCreateInputSchema,
  spaceListInputSchema,
  spacePolicyInputSchema,
  verdictInputSchema,
  watchInputSchema,
} from "../spaces/wire-inputs.ts";

/**
 * Limits of requests that carry documents. A commit's text may be longer than its canonical form, because of escapes
 * and white space; a value is nested inside the commit, its operations and the patches of one operation.
 */
const large = { bytes: 8_388_608, jsonDepth: maxEncodedDepth + 12 } as const;

export const spaceOperations = {
  "space.create": { http: { method: "POST", path: "/spaces" }, input: spaceCreateInputSchema },
  "space.list": { http: { method: "GET", path: "/spaces" }, input: spaceListInputSchema },
  "space.policy": { http: { method: "PUT", path: "/spaces/:space/policy" }, input: spacePolicyInputSchema },
  "space.open": { http: { method: "POST", path: "/spaces/:space/sessions" }, input: sessionOpenInputSchema },
  "space.commit": { http: { method: "POST", path: "/spaces/:space/commits" }, input: commitInputSchema, large },
  "space.verdict": {
    http: { method: "GET", path: "/spaces/:space/sessions/:sessionId/commits/:localSeq" },
    input: verdictInputSchema,
  },
  /** Frames are pushed, so watching needs a socket. */
  "space.watch": { input: watchInputSchema, large },
  "space.entity": { http: { method: "GET", path: "/spaces/:space/entities/:entityId" }, input: entityInputSchema },
  "space.query": { http: { method: "POST", path: "/spaces/:space/query" }, input: queryInputSchema, large },
  "space.log": { http: { method: "GET", path: "/spaces/:space/log" }, input: logInputSchema },
  "space.invocation": {
    http: { method: "GET", path: "/spaces/:space/invocations/:ref" },
    input: invocationInputSchema,
  },
  "space.branch.create": { http: { method: "POST", path: "/spaces/:space/branches" }, input: branchCreateInputSchema },
  "space.branch.delete": {
    http: { method: "POST", path: "/spaces/:space/branches/:name/delete" },
    input: branchDeleteInputSchema,
  },
  "space.branches": { http: { method: "GET", path: "/spaces/:space/branches" }, input: branchListInputSchema },
  "space.merge.propose": {
    http: { method: "POST", path: "/spaces/:space/merges/propose" },
    input: mergeProposeInputSchema,
    large,
  },
  "space.diff": { http: { method: "GET", path: "/spaces/:space/diff" }, input: diffInputSchema },
} as const;

/** The latest state of an entity. `document` is in its JSON form. */
export type SyncUpsert = {
  readonly branch: string;
  readonly id: string;
  /** The seq of its last write. */
  readonly seq: number;
  readonly document?: unknown;
  readonly deleted?: true;
};

/**
 * What a session watches on one branch, as of `toSeq`, as far as it is newer than `fromSeq`. Changes that do not fit
 * into one frame come in several: all but the last leave `toSeq` unchanged.
 */
export type SyncPush = {
  readonly type: "sync";
  readonly space: string;
  readonly sessionId: string;
  readonly branch: string;
  readonly fromSeq: number;
  readonly toSeq: number;
  /** No commit of the session with a higher localSeq is visible in this frame. */
  readonly caughtUpLocalSeq: number;
  readonly upserts: readonly SyncUpsert[];
  /** Ids that this session watched and is no longer informed about. */
  readonly removes: readonly string[];
};

/** Another connection has opened the session since: this one does not hold it any more. */
export type SessionRevokedPush = {
  readonly type: "session.revoked";
  readonly space: string;
  readonly sessionId: string;
};

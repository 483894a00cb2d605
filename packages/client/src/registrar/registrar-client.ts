// The registrar for programs: approve, register, compensate, and read the state of a request. Registering survives lost
// answers: a client that does not know whether its request was committed reads its state first, and only then sends it
// again.
import { randomUUID } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import { encodeHex } from "@claudemesh/protocol/encoding/hex";
import { MeshError } from "@claudemesh/protocol/errors";
import { backoffDelayMs } from "@claudemesh/protocol/messages/backoff";
import { type ApprovalPurpose, type ApprovalTerms, approvalBytes } from "@claudemesh/protocol/registrar/approval";
import { registrarProtocolVersion } from "@claudemesh/protocol/registrar/digests";
import { registrarRefusal } from "@claudemesh/protocol/registrar/registrar-refusals";
import type { RegistrationState } from "@claudemesh/protocol/registrar/registration-state";
import { type BrokerCall, BrokerRefusal } from "../broker/broker-client.ts";

/** One artifact, for one target, in one run. */
export type ArtifactEffect = {
  readonly operation: string;
  readonly target: string;
  readonly artifact_hash: string;
  readonly run_id: string;
};

export type ApproveRequest = ArtifactEffect & {
  /** Chosen by the caller; absent: one is made. */
  readonly approval_id?: string;
  readonly purpose?: ApprovalPurpose;
  readonly logical_request_key?: string;
  readonly not_before: number;
  readonly not_after: number;
};

export type ApprovalAnswer = {
  readonly approval_id: string;
  /** Absent where an approval with a given id existed already: it is shown once. */
  readonly authorization_nonce?: string;
  readonly not_after: number;
};

export type Authorization = { readonly approval_id: string; readonly authorization_nonce: string };

export type RegisterRequest = ArtifactEffect &
  Authorization & {
    readonly logical_request_key: string;
    /** Names the first execution; every further one gets a new name. */
    readonly attempt_id?: string;
    readonly expires_at?: number;
  };

export type RegistrationRecord = ArtifactEffect & {
  readonly registration_id: string;
  readonly logical_request_key: string;
  readonly [field: string]: unknown;
};

export type RequestAnswer = {
  readonly registration: RegistrationRecord;
  readonly state: RegistrationState;
  readonly duplicate: boolean;
  readonly [field: string]: unknown;
};

export type RequestStatus = {
  readonly state: RegistrationState;
  readonly registration?: RegistrationRecord;
  readonly verification?: { readonly verifier: string; readonly reasons: readonly string[] };
  readonly compensation?: { readonly approval_id: string; readonly compensated_by: string };
  readonly attempts: { readonly recorded: number; readonly retries: number };
  readonly [field: string]: unknown;
};

export type RegistrarPage<Item> = { readonly items: readonly Item[]; readonly next_cursor: string | null };
export type PageOptions = { readonly after?: string; readonly limit?: number };

export type RegistrarClientOptions = {
  /** One call as a member: `createHttpCall`, or `connectingCall` with a member's keys. */
  readonly call: BrokerCall;
  /** The owner's ed25519 signature, and the mesh in which it is valid; both are needed to approve. */
  readonly sign?: (bytes: Uint8Array) => Uint8Array;
  readonly meshId?: string;
  /** How many calls may stay without an answer before the last failure is thrown. */
  readonly lostAnswersMax?: number;
  readonly sleep?: (ms: number) => Promise<unknown>;
  /** In [0, 1). */
  readonly random?: () => number;
  /** Makes unique ids, for approvals and attempts. */
  readonly nextId?: () => string;
};

export type RegistrarClient = {
  readonly approve: (request: ApproveRequest) => Promise<ApprovalAnswer>;
  readonly revoke: (approvalId: string) => Promise<Readonly<Record<string, unknown>>>;
  readonly register: (request: RegisterRequest) => Promise<RequestAnswer>;
  readonly compensate: (
    logicalRequestKey: string,
    authorization: Authorization,
    attemptId?: string,
  ) => Promise<RequestAnswer>;
  readonly status: (logicalRequestKey: string) => Promise<RequestStatus>;
  readonly attempts: (logicalRequestKey: string) => Promise<Readonly<Record<string, unknown>>>;
  readonly listApprovals: (page?: PageOptions) => Promise<RegistrarPage<Readonly<Record<string, unknown>>>>;
  readonly listRegistrations: (page?: PageOptions) => Promise<RegistrarPage<RequestAnswer>>;
  readonly listAudit: (page?: PageOptions) => Promise<RegistrarPage<Readonly<Record<string, unknown>>>>;
};

const lostAnswersDefault = 8;
const backoff = { minMs: 100, maxMs: 5_000 };

export function createRegistrarClient(options: RegistrarClientOptions): RegistrarClient {
  const patience = () => new Patience(options);
  const { nextId = randomUUID } = options;
  /** For calls that are safe to repeat. */
  const ask = async <T>(operation: Parameters<BrokerCall>[0], input: object): Promise<T> => {
    const lost = patience();
    for (;;) {
      try {
        return (await options.call(operation, input)) as T;
      } catch (error) {
        await lost.bear(error);
      }
    }
  };
  const status = (key: string) => ask<RequestStatus>("registrar.resolve", { logical_request_key: key });
  return {
    approve: (request) => approveWith(options, ask, request),
    revoke: (approvalId) => ask("registrar.revoke", { approval_id: approvalId }),
    register: (request) => registerThroughLoss({ call: options.call, nextId, status }, patience(), request),
    compensate: (key, authorization, attemptId = nextId()) =>
      ask("registrar.compensate", { logical_request_key: key, ...authorization, attempt_id: attemptId }),
    status,
    attempts: (key) => ask("registrar.attempts", { logical_request_key: key }),
    listApprovals: (page = {}) => ask("registrar.approvals", page),
    listRegistrations: (page = {}) => ask("registrar.registrations", page),
    listAudit: (page = {}) => ask("registrar.audit", page),
  };
}

/** Accepts a limited number of failures that another try may overcome. */
class Patience {
  readonly #max: number;
  readonly #sleep: (ms: number) => Promise<unknown>;
  readonly #random: () => number;
  #borne = 0;

  constructor({ lostAnswersMax = lostAnswersDefault, sleep = wait, random = Math.random }: RegistrarClientOptions) {
    this.#max = lostAnswersMax;
    this.#sleep = sleep;
    this.#random = random;
  }

  /** Waits for a while, or throws a failure that no waiting changes. */
  async bear(error: unknown): Promise<void> {
    const mayPass = (error instanceof MeshError || error instanceof BrokerRefusal) && error.retryable;
    this.#borne += 1;
    if (!mayPass || this.#borne > this.#max) throw error;
    await this.#sleep(backoffDelayMs(this.#borne, this.#random(), backoff));
  }
}

type Registering = {
  readonly call: BrokerCall;
  readonly nextId: () => string;
  readonly status: (key: string) => Promise<RequestStatus>;
};

async function registerThroughLoss(
  { call, nextId, status }: Registering,
  lost: Patience,
  request: RegisterRequest,
): Promise<RequestAnswer> {
  const { attempt_id: firstAttempt = nextId(), ...input } = request;
  for (let attempt_id = firstAttempt; ; attempt_id = nextId()) {
    try {
      const body = { protocol_version: registrarProtocolVersion, ...input, attempt_id };
      return (await call("registrar.register", body)) as RequestAnswer;
    } catch (error) {
      const winner = winnerOf(error);
      if (winner !== undefined) return winner;
      await lost.bear(error);
    }
    const existing = await status(input.logical_request_key);
    if (existing.registration !== undefined) return resolved(request, existing, existing.registration);
  }
}

/** A collision is not a failure: the request is registered, by another execution of it. */
function winnerOf(error: unknown): RequestAnswer | undefined {
  if (!(error instanceof MeshError) || error.code !== "attempt_collision") return undefined;
  const { registration, state } = error.details as { registration: RegistrationRecord; state: RegistrationState };
  return { registration, state, duplicate: true };
}

/** The registration under the key is the answer, if it is for the same request. */
function resolved(request: RegisterRequest, existing: RequestStatus, registration: RegistrationRecord): RequestAnswer {
  for (const field of ["operation", "target", "artifact_hash", "run_id"] as const) {
    if (registration[field] === request[field]) continue;
    throw registrarRefusal("replay_duplicate", { conflict: "request_mismatch", registration, state: existing.state });
  }
  return { ...existing, registration, duplicate: true };
}

type Ask = <T>(operation: Parameters<BrokerCall>[0], input: object) => Promise<T>;

/** A lost answer took the nonce with it: an approval under an id of ours is then revoked and made again. */
async function approveWith(
  { sign, meshId, nextId = randomUUID }: RegistrarClientOptions,
  ask: Ask,
  request: ApproveRequest,
): Promise<ApprovalAnswer> {
  if (sign === undefined || meshId === undefined) {
    throw new MeshError("forbidden", "To approve takes the owner's keys and the mesh's id; a token is not enough.");
  }
  const { approval_id: givenId, purpose = "register", ...rest } = request;
  for (;;) {
    const approval_id = givenId ?? nextId();
    const terms: ApprovalTerms = { approval_id, purpose, ...rest };
    const signature = encodeHex(sign(approvalBytes(meshId, terms)));
    const answer = await ask<ApprovalAnswer>("registrar.approve", { ...terms, signature });
    if (answer.authorization_nonce !== undefined || givenId !== undefined) return answer;
    await ask("registrar.revoke", { approval_id });
  }
}

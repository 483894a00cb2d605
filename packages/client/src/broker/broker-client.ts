// Calls to a broker without a daemon: creating and joining a mesh over HTTP, and a member's calls over one short-lived
// socket. Every outcome other than an answer is an error with a catalogue code. Messages normally go through the daemon
// instead.

import { setTimeout as sleep } from "node:timers/promises";
import { encodeHex } from "@claudemesh/protocol/encoding/hex";
import { type ErrorCode, errorCatalogue } from "@claudemesh/protocol/error-catalogue";
import { type ErrorBody, isErrorBody, MeshError } from "@claudemesh/protocol/errors";
import { parseOwnJsonText, StrictJsonError } from "@claudemesh/protocol/json";
import { backoffDelayMs } from "@claudemesh/protocol/messages/backoff";
import type { CreateMeshRequest, Invite, JoinRequest } from "@claudemesh/protocol/wire/invite";
import type { OperationName } from "@claudemesh/protocol/wire/operations";
import { createMeshBytes, joinBytes } from "@claudemesh/protocol/wire/signing";
import { type MemberKeys, signerOf } from "../keys/member-keys.ts";
import { BrokerRoute } from "../link/broker-route.ts";
import type { BrokerTrust } from "../link/broker-trust.ts";
import { connectOnce } from "../link/link.ts";
import type { Link, LinkOutcome, MemberIdentity } from "../link/link-contract.ts";
import { describeSocketTrouble } from "../link/socket-trouble.ts";
import { sealOutgoing } from "../seal/outgoing.ts";
import { brokerHttpUrl } from "./broker-url.ts";
import { proveBroker } from "./prove-broker.ts";

/** A membership as the broker has recorded it. */
export type Membership = {
  readonly mesh: string;
  readonly mesh_id: string;
  readonly member_pubkey: string;
  readonly name: string;
  readonly role: "owner" | "member";
};

/** A membership with the key of the broker, which the caller knew before or trusts from now on. */
export type NewMembership = Membership & { readonly broker_key: string };

const httpTimeoutMs = 10_000;
const httpTries = 4;
const httpBackoff = { minMs: 100, maxMs: 1_000 };

/** Safe to call again with the same keys: the broker answers with the mesh that exists. */
export async function createMesh(options: {
  readonly broker: string;
  readonly adminToken: string;
  readonly name: string;
  readonly ownerName: string;
  readonly keys: MemberKeys;
  /**
   * The key that the broker must prove before the admin token is sent; absent: any key that the broker proves is
   * accepted as its key.
   */
  readonly brokerKey?: string | undefined;
}): Promise<NewMembership> {
  const { broker, adminToken, name, ownerName, keys } = options;
  const broker_key = await proveBroker({ broker, expected: options.brokerKey, post });
  const pubkey = keys.ed25519.public_key;
  const signed = createMeshBytes({ name, owner_name: ownerName, owner_pubkey: pubkey });
  const request: CreateMeshRequest = {
    name,
    owner: { name: ownerName, pubkey },
    signature: encodeHex(signerOf(keys)(signed)),
  };
  const headers = { authorization: `Bearer ${adminToken}` };
  return { ...membershipFrom(await post(broker, "/v1/meshes", request, headers), pubkey), broker_key };
}

/** Safe to call again with the same keys: the invite gives the same membership to the key that used it. */
export async function joinMesh(options: {
  readonly invite: Invite;
  readonly name: string;
  readonly keys: MemberKeys;
}): Promise<NewMembership> {
  const { invite, name, keys } = options;
  const { broker, mesh_id, secret } = invite;
  // The secret admits the first key that presents it, so only the invite's own broker may see it.
  const broker_key = await proveBroker({ broker, meshId: mesh_id, expected: invite.broker_key, post });
  const pubkey = keys.ed25519.public_key;
  const signed = joinBytes({ mesh_id, secret, name, pubkey });
  const request: JoinRequest = { secret, name, pubkey, signature: encodeHex(signerOf(keys)(signed)) };
  const path = `/v1/meshes/${encodeURIComponent(mesh_id)}/join`;
  return { ...membershipFrom(await post(broker, path, request, {}), pubkey), broker_key };
}

/**
 * The key that the broker at this address proves to hold; rejects with `not_our_broker` where another key is expected.
 */
export function proveBrokerAt(
  broker: string,
  { meshId, expected }: { readonly meshId?: string; readonly expected?: string | undefined } = {},
): Promise<string> {
  return proveBroker({ broker, meshId, expected, post });
}

/** Asks again when an answer is lost, because every request that is made here is idempotent. */
async function post(
  broker: string,
  path: string,
  body: object,
  headers: Readonly<Record<string, string>>,
): Promise<unknown> {
  const url = brokerHttpUrl(broker, path);
  for (let attempts = 1; ; attempts++) {
    const answer = await postOnce(url, body, headers);
    if (answer.type === "answered") return answer.body;
    if (attempts === httpTries) {
      const message = `No answer from the broker at ${broker} (${answer.why}); is it running there?`;
      throw new MeshError("broker_unreachable", message, { broker, reason: answer.why }, answer.cause);
    }
    await sleep(backoffDelayMs(attempts, Math.random(), httpBackoff));
  }
}

type HttpEnd =
  | { readonly type: "answered"; readonly body: unknown }
  | { readonly type: "lost"; readonly why: string; readonly cause: unknown };

/** Throws the refusal when the broker answered with one. */
async function postOnce(url: string, body: object, headers: Readonly<Record<string, string>>): Promise<HttpEnd> {
  const request = new Request(url, {
    method: "POST",
    headers: { ...headers, "content-type": "application/json" },
    body: JSON.stringify(body),
    // A redirect would carry the token or the invite's secret to an address that the user did not give.
    redirect: "manual",
    signal: AbortSignal.timeout(httpTimeoutMs),
  });
  let status: number;
  let text: string;
  try {
    const response = await fetch(request);
    status = response.status;
    text = await response.text();
  } catch (cause) {
    return { type: "lost", why: describeLoss(cause), cause };
  }
  const value = parseJson(text);
  if (status === 200 || status === 201) return { type: "answered", body: value };
  throw refusalFrom(status, value);
}

/** The system's error code is in the cause of fetch's error. */
export function describeLoss(error: unknown): string {
  const cause = error instanceof Error ? (error.cause ?? error) : error;
  if (!(cause instanceof Error)) return String(cause);
  const said = describeSocketTrouble(cause);
  return said === cause.message ? ((cause as NodeJS.ErrnoException).code ?? said) : said;
}

export function parseJson(text: string): unknown {
  try {
    return parseOwnJsonText(text);
  } catch (error) {
    if (error instanceof StrictJsonError) return undefined;
    throw error;
  }
}

function membershipFrom(body: unknown, pubkey: string): Membership {
  const { mesh, mesh_id, member_pubkey, name, role } = (body ?? {}) as Record<string, unknown>;
  const isComplete = typeof mesh === "string" && typeof mesh_id === "string" && typeof name === "string";
  if (!isComplete || (role !== "owner" && role !== "member") || member_pubkey !== pubkey) {
    throw new MeshError("internal", "The broker answered with something that is no membership of this key.");
  }
  return { mesh, mesh_id, member_pubkey: pubkey, name, role };
}

/** One call as a member: the answer's body, or a MeshError or BrokerRefusal. */
export type BrokerCall = (operation: OperationName, input: object) => Promise<unknown>;

export type BrokerOptions = {
  readonly broker: string;
  /** Other brokers of the same store, asked in this order where those before cannot be reached. */
  readonly brokers?: readonly string[];
  readonly identity: MemberIdentity;
  /** Program and version, for the broker's log. */
  readonly agent: string;
  /** Absent: the broker may have any key. */
  readonly trust?: BrokerTrust;
  readonly connectTimeoutMs?: number;
  readonly requestTimeoutMs?: number;
};

const defaultRequestTimeoutMs = 30_000;

/**
 * Connects, lets `use` make its calls, and closes the connection in every case. Direct messages in the calls are
 * sealed.
 */
export async function withBroker<T>(options: BrokerOptions, use: (call: BrokerCall) => Promise<T>): Promise<T> {
  const { identity, requestTimeoutMs = defaultRequestTimeoutMs } = options;
  const { link, broker } = await connectToAny(options);
  try {
    return await use(async (operation, input) => {
      const sealed = await sealOutgoing(identity, operation, input);
      return callOver(link, broker, operation, sealed, requestTimeoutMs);
    });
  } finally {
    await link.close();
  }
}

const nextBrokerMs = 2_000;

/** Tries the next broker only where nothing was sent to the one before. The failure of the last one is reported. */
async function connectToAny(options: BrokerOptions): Promise<{ readonly link: Link; readonly broker: string }> {
  const { identity, agent, trust, connectTimeoutMs } = options;
  const route = new BrokerRoute(options.broker, options.brokers);
  for (;;) {
    const broker = route.current;
    const isLast = route.untried <= 1;
    const timeoutMs = isLast ? connectTimeoutMs : Math.min(connectTimeoutMs ?? nextBrokerMs, nextBrokerMs);
    try {
      const link = await connectOnce({
        url: broker,
        identity,
        kind: "client",
        agent,
        onPush: () => undefined,
        ...(trust === undefined ? {} : { trust }),
        ...(timeoutMs === undefined ? {} : { connectTimeoutMs: timeoutMs }),
      });
      return { link, broker };
    } catch (error) {
      const isAway = error instanceof MeshError && error.code === "broker_unreachable";
      if (!isAway || route.failed()) throw error;
    }
  }
}

/** Calls that open a connection each time, for few calls that must survive a lost connection between them. */
export function connectingCall(options: BrokerOptions): BrokerCall {
  return (operation, input) => withBroker(options, (call) => call(operation, input));
}

/** One call over a connected link. */
export async function callOver(
  link: Link,
  broker: string,
  operation: OperationName,
  input: object,
  timeoutMs: number,
): Promise<unknown> {
  const outcome = await link.request(operation, input, { timeoutMs });
  if (outcome.type !== "answered") throw noAnswer(outcome.type, broker, operation);
  const { status, body } = outcome;
  if (status >= 200 && status < 300) return body;
  throw refusalFrom(status, body);
}

/** `sent` in the details is true where the broker may have carried out the request. */
function noAnswer(end: Exclude<LinkOutcome["type"], "answered">, broker: string, operation: string): MeshError {
  const what = {
    timed_out: `The broker at ${broker} did not answer "${operation}" in time; it may have been carried out.`,
    connection_lost: `The connection to ${broker} broke during "${operation}"; it may have been carried out.`,
    not_sent: `The connection to ${broker} ended before "${operation}" was sent.`,
  };
  return new MeshError("broker_unreachable", what[end], { broker, outcome: end, sent: end !== "not_sent" });
}

/** A refusal whose code this version's catalogue does not have. */
export class BrokerRefusal extends Error {
  override readonly name = "BrokerRefusal";
  readonly status: number;
  readonly body: ErrorBody;

  constructor(status: number, body: ErrorBody) {
    super(body.message);
    this.status = status;
    this.body = body;
  }

  get code(): string {
    return this.body.error;
  }

  get retryable(): boolean {
    return this.body.retryable;
  }
}

/**
 * The catalogue's class where this version knows the code; otherwise the broker's own words, so that an old client can
 * still show and act on a newer broker's answer.
 */
export function refusalFrom(status: number, body: unknown): MeshError | BrokerRefusal {
  if (!isErrorBody(body)) {
    const message = `The broker answered with status ${status} and nothing that this client understands.`;
    const retryable = status >= 500 || status === 429 || status === 408;
    return new BrokerRefusal(status, { error: "unknown_answer", message, retryable });
  }
  const { error, message, retryable, ...details } = body;
  if (isKnownCode(error) && errorCatalogue[error].status === status) return new MeshError(error, message, details);
  return new BrokerRefusal(status, { ...body, retryable: retryable === true });
}

function isKnownCode(code: string): code is ErrorCode {
  return Object.hasOwn(errorCatalogue, code);
}

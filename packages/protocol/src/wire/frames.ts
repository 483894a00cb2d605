// The frames that open a socket, and those that the broker sends without a request. Requests and their inputs are in
// operations.ts. The broker checks what a client sends against these schemas; clients ignore fields that they do not
// know.
import type { FromSchema, JSONSchema } from "json-schema-to-ts";
import type { AnnouncedFeatures } from "../features/features.ts";
import type { Destination } from "../messages/addresses.ts";
import type { HistoryItem } from "./history-item.ts";
import { connectionKinds } from "./signing.ts";
import type { SessionRevokedPush, SyncPush } from "./spaces-operations.ts";

export const protocolVersion = 2;
export const connectPath = "/v1/connect";

/** A request id: chosen by the client, unique among its requests in flight. */
export const requestIdSchema = { type: "integer", minimum: 1, maximum: Number.MAX_SAFE_INTEGER } as const;

const nonce = { type: "string", pattern: "^[0-9a-f]{64}$" } as const;
const publicKey = { type: "string", pattern: "^[0-9a-f]{64}$" } as const;
const signature = { type: "string", pattern: "^[0-9a-f]{128}$" } as const;
const meshId = { type: "string", minLength: 36, maxLength: 36 } as const;

/** The client's first frame: it names the mesh, and a nonce over which the broker must prove its key. */
export const connectFrameSchema = {
  type: "object",
  additionalProperties: false,
  required: ["type", "protocol", "mesh_id", "nonce"],
  properties: {
    type: { type: "string", const: "connect" },
    protocol: { type: "integer", minimum: 1, maximum: 1_000_000 },
    mesh_id: meshId,
    nonce,
  },
} as const satisfies JSONSchema;

export type ConnectFrame = FromSchema<typeof connectFrameSchema>;

/** The broker's answer: its key, its features, and its signature over `proofBytes`. */
export type ProofFrame = {
  readonly type: "proof";
  readonly protocol: number;
  /** The broker's own nonce, for the hello. */
  readonly nonce: string;
  readonly broker_key: string;
  readonly features: AnnouncedFeatures;
  readonly signature: string;
};

/** The same exchange over HTTP, before an invite's secret or an admin token is sent. */
export const proveRequestSchema = {
  type: "object",
  additionalProperties: false,
  required: ["nonce"],
  properties: { nonce, mesh_id: meshId },
} as const satisfies JSONSchema;

export type ProveRequest = FromSchema<typeof proveRequestSchema>;

export type ProveReplyBody = { readonly broker_key: string; readonly signature: string };

export const provePath = "/v1/broker/prove";

export const helloFrameSchema = {
  type: "object",
  additionalProperties: false,
  required: ["type", "id", "mesh_id", "pubkey", "kind", "signature"],
  properties: {
    type: { type: "string", const: "hello" },
    id: requestIdSchema,
    mesh_id: meshId,
    pubkey: publicKey,
    kind: { type: "string", enum: connectionKinds },
    signature,
    agent: { type: "string", maxLength: 128 },
  },
} as const satisfies JSONSchema;

export type HelloFrame = FromSchema<typeof helloFrameSchema>;

export type HelloReplyBody = {
  readonly mesh: string;
  readonly mesh_id: string;
  readonly member: { readonly pubkey: string; readonly name: string; readonly role: "owner" | "member" };
  /** Further addresses of the mesh: the public addresses of the brokers of this store. */
  readonly brokers?: readonly string[];
};

export type ReplyFrame = {
  readonly type: "reply";
  readonly id: number;
  readonly status: number;
  readonly body: unknown;
};

export type MessagePush = HistoryItem & { readonly type: "message" };
export type MemberRevokedPush = { readonly type: "member_revoked"; readonly pubkey: string };

/** A member that is connected, and what it says about itself. */
export type PeerItem = {
  readonly pubkey: string;
  readonly name: string;
  readonly role: "owner" | "member";
  readonly connected_at: number;
  readonly summary: string;
  readonly status: string;
  readonly visible: boolean;
  readonly avatar: string;
  readonly title: string;
  readonly bio: string;
  readonly capabilities: readonly string[];
};

export type PeerJoinPush = PeerItem & { readonly type: "peer_join" };
export type PeerLeavePush = { readonly type: "peer_leave"; readonly pubkey: string };

/** Sends to this destination are refused from now on: the topic was deleted, or the member revoked. */
export type DestinationGonePush = Destination & { readonly type: "destination_gone" };

/** The public addresses of the brokers of this store have changed. */
export type BrokersChangedPush = { readonly type: "brokers_changed"; readonly brokers: readonly string[] };

/** What a broker may send without a request. More kinds may come; a client ignores those that it does not know. */
export type PushFrame =
  | MessagePush
  | MemberRevokedPush
  | PeerJoinPush
  | PeerLeavePush
  | DestinationGonePush
  | BrokersChangedPush
  | SyncPush
  | SessionRevokedPush;

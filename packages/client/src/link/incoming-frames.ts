// Reads what a broker sends: each text frame becomes one of a closed set. Frames of unknown kinds are ignored, so that
// old clients keep working; a known kind with a wrong shape is malformed. connection.ts acts on the frames.

import type { AnnouncedFeatures } from "@claudemesh/protocol/features";
import { parseOwnJsonText, StrictJsonError } from "@claudemesh/protocol/json";
import { type DestinationKind, destinationKinds } from "@claudemesh/protocol/messages/addresses";
import { envelopeVersions, priorities } from "@claudemesh/protocol/messages/envelope";
import type {
  HelloReplyBody,
  MessagePush,
  PeerJoinPush,
  ProofFrame,
  PushFrame,
  ReplyFrame,
} from "@claudemesh/protocol/wire/frames";
import type { SessionRevokedPush, SyncPush } from "@claudemesh/protocol/wire/spaces-operations";

export type IncomingFrame =
  | { readonly type: "proof"; readonly proof: ProofFrame }
  /** The first frame of brokers with the earlier handshake. */
  | { readonly type: "challenge" }
  | { readonly type: "reply"; readonly reply: ReplyFrame }
  | { readonly type: "push"; readonly push: PushFrame }
  | { readonly type: "unknown" }
  | { readonly type: "malformed"; readonly detail: string };

type Fields = Readonly<Record<string, unknown>>;

export function readIncomingFrame(text: string): IncomingFrame {
  const frame = parseObject(text);
  if (frame === undefined) return malformed("a frame is not a JSON object");
  switch (frame.type) {
    case "reply":
      return readReply(frame);
    case "message":
      return readMessagePush(frame);
    case "member_revoked":
      if (typeof frame.pubkey !== "string") return malformed("a member_revoked push names no member");
      return { type: "push", push: { type: "member_revoked", pubkey: frame.pubkey } };
    case "peer_join":
      return readPeerJoin(frame);
    case "peer_leave":
      if (typeof frame.pubkey !== "string") return malformed("a peer_leave push names no member");
      return { type: "push", push: { type: "peer_leave", pubkey: frame.pubkey } };
    case "destination_gone":
      return readDestinationGone(frame);
    case "brokers_changed":
      if (!isTexts(frame.brokers)) return malformed("a brokers_changed push names no brokers");
      return { type: "push", push: { type: "brokers_changed", brokers: frame.brokers } };
    case "sync":
    case "session.revoked":
      return readSpacePush(frame);
    case "proof":
      return readProof(frame);
    case "challenge":
      return { type: "challenge" };
    default:
      return typeof frame.type === "string" ? { type: "unknown" } : malformed("a frame has no type");
  }
}

/** The body of a hello's 200; undefined where it does not have the shape of the protocol. */
export function readHelloReply(body: unknown): HelloReplyBody | undefined {
  if (!isFields(body) || !isFields(body.member)) return undefined;
  const { mesh, mesh_id } = body;
  const { pubkey, name, role } = body.member;
  if (typeof mesh !== "string" || typeof mesh_id !== "string") return undefined;
  if (typeof pubkey !== "string" || typeof name !== "string") return undefined;
  if (role !== "owner" && role !== "member") return undefined;
  const brokers = isTexts(body.brokers) ? { brokers: body.brokers } : {};
  return { mesh, mesh_id, member: { pubkey, name, role }, ...brokers };
}

function parseObject(text: string): Fields | undefined {
  try {
    const value: unknown = parseOwnJsonText(text);
    return isFields(value) ? value : undefined;
  } catch (error) {
    if (error instanceof StrictJsonError) return undefined;
    throw error;
  }
}

function readReply(frame: Fields): IncomingFrame {
  const { id, status, body } = frame;
  if (!isWhole(id) || !isWhole(status)) return malformed("a reply has no id or no status");
  return { type: "reply", reply: { type: "reply", id, status, body } };
}

function readProof(frame: Fields): IncomingFrame {
  const { protocol, nonce, broker_key, features, signature } = frame;
  const isComplete = isWhole(protocol) && isHex(nonce, 64) && isHex(broker_key, 64) && isHex(signature, 128);
  if (!isComplete || !isFields(features)) return malformed("the proof has a wrong shape");
  const announced = features as AnnouncedFeatures;
  return { type: "proof", proof: { type: "proof", protocol, nonce, broker_key, features: announced, signature } };
}

/** A feature whose parameters have an unknown form cannot be used, which is the same as not having it. */
export function usableFeatures(features: AnnouncedFeatures): AnnouncedFeatures {
  return Object.fromEntries(Object.entries(features).filter(([, parameters]) => isFields(parameters)));
}

function readPeerJoin(frame: Fields): IncomingFrame {
  if (typeof frame.pubkey !== "string" || typeof frame.name !== "string") {
    return malformed("a peer_join push names no member");
  }
  return { type: "push", push: frame as unknown as PeerJoinPush };
}

function readDestinationGone({ kind, ref }: Fields): IncomingFrame {
  if (typeof ref !== "string") return malformed("a destination_gone push names no destination");
  if (!isOneOf(destinationKinds, kind)) return { type: "unknown" };
  return { type: "push", push: { type: "destination_gone", kind: kind as DestinationKind, ref } };
}

/** The holder of the session reads its content. */
function readSpacePush(frame: Fields): IncomingFrame {
  if (typeof frame.space !== "string" || typeof frame.sessionId !== "string") {
    return malformed(`a ${frame.type} push names no session`);
  }
  return { type: "push", push: frame as unknown as SyncPush | SessionRevokedPush };
}

function readMessagePush(frame: Fields): IncomingFrame {
  const { destination } = frame;
  if (!hasMessageShape(frame) || !isFields(destination)) return malformed("a message push has a wrong shape");
  // A word from a newer protocol makes this message unreadable, and does not break the connection.
  const readable =
    isOneOf(destinationKinds, destination.kind) &&
    isOneOf(envelopeVersions, frame.envelope_version) &&
    isOneOf(priorities, frame.priority);
  return readable ? { type: "push", push: frame as unknown as MessagePush } : { type: "unknown" };
}

function hasMessageShape(frame: Fields): boolean {
  const { destination, meta, body, body_base64, reply_to_id } = frame;
  return (
    isWhole(frame.history_id) &&
    isWhole(frame.accepted_at) &&
    typeof frame.broker_message_id === "string" &&
    typeof frame.client_message_id === "string" &&
    typeof frame.sender_pubkey === "string" &&
    isFields(destination) &&
    typeof destination.ref === "string" &&
    (meta === null || isFields(meta)) &&
    (reply_to_id === null || typeof reply_to_id === "string") &&
    (body === undefined ? typeof body_base64 === "string" : typeof body === "string" && body_base64 === undefined)
  );
}

function malformed(detail: string): IncomingFrame {
  return { type: "malformed", detail };
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isHex(value: unknown, characters: number): value is string {
  return typeof value === "string" && value.length === characters && /^[0-9a-f]+$/.test(value);
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((each) => typeof each === "string");
}

function isWhole(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function isOneOf(values: readonly string[], value: unknown): boolean {
  return typeof value === "string" && values.includes(value);
}

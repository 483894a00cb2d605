// What brokers tell each other, and its text. A signal is a hint that saves waiting: nothing depends on its arrival, so
// that whatever cannot be read is passed over, as from a broker of another version.
import { createHmac, type KeyObject, timingSafeEqual } from "node:crypto";

import { type DestinationKind, destinationKinds } from "@claudemesh/protocol/messages/addresses";

export type Signal =
  /** There is something new for these recipients. */
  | { readonly type: "deliveries"; readonly meshId: string; readonly recipients: readonly string[] }
  /** A daemon of this member has connected. Stamps grow with time and are never equal. */
  | { readonly type: "daemon_connected"; readonly meshId: string; readonly pubkey: string; readonly stamp: string }
  /** A daemon of this member has connected and stays unless an older one objects. */
  | { readonly type: "daemon_offered"; readonly meshId: string; readonly pubkey: string; readonly stamp: string }
  /** The objection: the daemon with this stamp has to go. */
  | { readonly type: "daemon_refused"; readonly meshId: string; readonly pubkey: string; readonly stamp: string }
  | { readonly type: "member_revoked"; readonly meshId: string; readonly pubkey: string }
  /** Sends to it are refused from now on. */
  | {
      readonly type: "destination_gone";
      readonly meshId: string;
      readonly kind: DestinationKind;
      readonly ref: string;
      /** For this member alone. */
      readonly pubkey?: string;
    }
  /** A member may have come, gone, or changed whether it is seen. */
  | { readonly type: "presence_changed"; readonly meshId: string }
  /** The space has reached this seq. */
  | { readonly type: "space_changed"; readonly meshId: string; readonly spaceId: string; readonly seq: number }
  /** The session was opened for the so many-th time. */
  | {
      readonly type: "session_taken";
      readonly meshId: string;
      readonly spaceId: string;
      readonly sessionId: string;
      readonly epoch: number;
    };

const signatureCharacters = 64;

// A key object is made once, because making one from bytes costs six times as much as the signature.
function signatureOf(text: string, secret: KeyObject): string {
  return createHmac("sha256", secret).update(text).digest("hex");
}

export type SignalMessage = { readonly from: string; readonly signals: readonly Signal[] };

/** Signed with what only the brokers of the store know: any program that reaches Redis can publish on the channel. */
export function encodeSignals(message: SignalMessage, secret: KeyObject): string {
  const text = JSON.stringify(message);
  return `${signatureOf(text, secret)} ${text}`;
}

/** Undefined where the text is no message of these brokers. Signals of unknown types are left out. */
export function decodeSignals(signed: string, secret: KeyObject): SignalMessage | undefined {
  const text = signed.slice(signatureCharacters + 1);
  const shown = Buffer.from(signed.slice(0, signatureCharacters + 1));
  const wanted = Buffer.from(`${signatureOf(text, secret)} `);
  if (shown.length !== wanted.length || !timingSafeEqual(shown, wanted)) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isRecord(value) || typeof value.from !== "string" || !Array.isArray(value.signals)) return undefined;
  return { from: value.from, signals: value.signals.flatMap((signal) => readSignal(signal) ?? []) };
}

function readSignal(value: unknown): Signal | undefined {
  if (!isRecord(value) || typeof value.meshId !== "string") return undefined;
  const { type, meshId, pubkey, stamp, recipients } = value;
  if (type === "deliveries" && Array.isArray(recipients) && recipients.every((each) => typeof each === "string")) {
    return { type, meshId, recipients };
  }
  if (type === "presence_changed") return { type, meshId };
  if (type === "destination_gone") return readDestinationSignal(meshId, value);
  if (type === "space_changed" || type === "session_taken") return readSpaceSignal(type, meshId, value);
  if (typeof pubkey !== "string") return undefined;
  if (type === "daemon_connected" || type === "daemon_offered" || type === "daemon_refused") {
    return typeof stamp === "string" ? { type, meshId, pubkey, stamp } : undefined;
  }
  return type === "member_revoked" ? { type, meshId, pubkey } : undefined;
}

function readDestinationSignal(meshId: string, { kind, ref, pubkey }: Record<string, unknown>): Signal | undefined {
  const known = destinationKinds.find((each) => each === kind);
  if (known === undefined || typeof ref !== "string") return undefined;
  return { type: "destination_gone", meshId, kind: known, ref, ...(typeof pubkey === "string" && { pubkey }) };
}

function readSpaceSignal(
  type: "space_changed" | "session_taken",
  meshId: string,
  { spaceId, seq, sessionId, epoch }: Record<string, unknown>,
): Signal | undefined {
  if (typeof spaceId !== "string") return undefined;
  if (type === "space_changed") return typeof seq === "number" ? { type, meshId, spaceId, seq } : undefined;
  const isWhole = typeof sessionId === "string" && typeof epoch === "number";
  return isWhole ? { type, meshId, spaceId, sessionId, epoch } : undefined;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

// What spaces and messages agree on about the sends that a commit carries: the one prepares and accepts them, the other says
// when, and neither imports the other.
import type { Envelope } from "./envelope.ts";

/** One send, read and fingerprinted, with the ids and times that it will have if it is accepted. */
export type SendToAccept = {
  readonly meshId: string;
  readonly senderPubkey: string;
  readonly clientMessageId: string;
  readonly brokerMessageId: string;
  readonly envelope: Envelope;
  readonly fingerprint: Uint8Array;
  readonly mentions: readonly string[];
  readonly acceptedAtMs: number;
  /** When the dedupe row may be forgotten; undefined: never. */
  readonly expiresAtMs: number | undefined;
};

/** How the sends of a commit end: all of them accepted, or the first that can never be. */
export type SendsOutcome =
  /** The recipients are all members that have a delivery of them, each once. */
  | { readonly type: "accepted"; readonly recipients: readonly string[] }
  /** What the sends before it have written is undone by the caller. */
  | { readonly type: "refused"; readonly index: number; readonly code: string };

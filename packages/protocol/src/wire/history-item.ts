// One stored message as it is returned in history, in pushes and in search, with the same shape everywhere.
import { encodeBase64 } from "../encoding/base64.ts";
import { utf8Length } from "../encoding/utf8.ts";
import type { Destination } from "../messages/addresses.ts";
import type { EnvelopeVersion, Meta, Priority } from "../messages/envelope.ts";

export type HistoryItem = {
  readonly history_id: number;
  readonly broker_message_id: string;
  readonly client_message_id: string;
  readonly destination: Destination;
  readonly sender_pubkey: string;
  readonly envelope_version: EnvelopeVersion;
  readonly body?: string;
  readonly body_base64?: string;
  readonly meta: Meta | null;
  readonly priority: Priority;
  readonly reply_to_id: string | null;
  /** Milliseconds since the epoch, like every time in the API. */
  readonly accepted_at: number;
};

const strictUtf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Escaping can make a text six times as long; from this size on that could exceed the size of a frame. */
const escapingMattersBytes = 131_072;

/** The bytes as text where they are valid text, else as base64. Sealed bodies are always base64. */
export function bodyFields(bytes: Uint8Array, sealed: boolean): { body: string } | { body_base64: string } {
  const text = sealed ? undefined : textOf(bytes);
  if (text !== undefined) {
    const fits = bytes.length < escapingMattersBytes || utf8Length(JSON.stringify(text)) <= bytes.length * 1.5;
    if (fits) return { body: text };
  }
  return { body_base64: encodeBase64(bytes) };
}

export function textOf(bytes: Uint8Array): string | undefined {
  try {
    return strictUtf8.decode(bytes);
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}

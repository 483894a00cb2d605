// The id of a send: its form and its source. Nothing is trimmed or normalised, because two callers that disagree about
// white space would disagree about identity.
import { MeshError } from "../errors/errors.ts";

const clientMessageIdPattern = /^[\x21-\x7e]{1,128}$/;

export function isClientMessageId(text: string): boolean {
  return clientMessageIdPattern.test(text);
}

/** Reads an Idempotency-Key header: bare, or a quoted structured-field string with its two escapes. */
export function parseIdempotencyKey(header: string): string {
  const value = header.startsWith('"') ? unquote(header) : header;
  if (value === undefined || !isClientMessageId(value)) {
    throw new MeshError("invalid_client_message_id", "The Idempotency-Key header is not a usable id.", {
      field: "Idempotency-Key",
    });
  }
  return value;
}

function unquote(text: string): string | undefined {
  let value = "";
  for (let at = 1; at < text.length; at++) {
    const character = text[at];
    if (character === '"') return at === text.length - 1 ? value : undefined;
    if (character !== "\\") {
      value += character;
      continue;
    }
    const escaped = text[++at];
    if (escaped !== '"' && escaped !== "\\") return undefined;
    value += escaped;
  }
  return undefined;
}

/**
 * The header if present, else the body, else undefined: the caller then makes an id. Both with different ids is
 * refused.
 */
export function chooseClientMessageId(header: string | undefined, body: string | undefined): string | undefined {
  if (body !== undefined && !isClientMessageId(body)) {
    throw new MeshError("invalid_client_message_id", undefined, { field: "client_message_id" });
  }
  if (header === undefined) return body;
  const key = parseIdempotencyKey(header);
  if (body !== undefined && body !== key) throw new MeshError("idempotency_key_ambiguous");
  return key;
}

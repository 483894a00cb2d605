// The parts of a message that both layers hash, and the checks that make hashing unambiguous: two different requests
// that pass them never have the same hashed bytes.

import { canonicalMeta } from "../canonical/canonical-json.ts";
import { utf8Length } from "../encoding/utf8.ts";
import { MeshError } from "../errors/errors.ts";
import type { JsonValue } from "../json/strict-json.ts";
import type { Destination } from "./addresses.ts";
import { limits } from "./limits.ts";
import { isPublicKey } from "./names.ts";

export const priorities = ["now", "next", "low"] as const;
export type Priority = (typeof priorities)[number];
export const defaultPriority: Priority = "next";

/**
 * "1": the body is what the sender wrote. "2": the body is a sealed box that holds the text alone; such messages are
 * still read and no longer written. "3": the box also holds everything that the broker could otherwise change
 * (sealed-content.ts).
 */
export const envelopeVersions = ["1", "2", "3"] as const;
export type EnvelopeVersion = (typeof envelopeVersions)[number];

export function isSealedVersion(version: EnvelopeVersion): boolean {
  return version !== "1";
}

/** A direct message whose body the broker could read. */
export function isUnsealedDm({ version, destination }: Pick<Envelope, "version" | "destination">): boolean {
  return destination.kind === "dm" && !isSealedVersion(version);
}

export type Meta = { readonly [key: string]: JsonValue };

export type Envelope = {
  readonly version: EnvelopeVersion;
  readonly destination: Destination;
  readonly replyToId: string | undefined;
  readonly priority: Priority;
  /** RFC 8785 text; "" when meta is absent or `{}`. */
  readonly canonicalMeta: string;
  readonly body: Uint8Array;
};

const replyToIdPattern = /^[\x21-\x7e]{1,128}$/;

export function isReplyToId(text: string): boolean {
  return replyToIdPattern.test(text);
}

/** Throws unless the id could be that of a message: printable ASCII without spaces. */
export function checkReplyToId(replyToId: string | undefined): void {
  if (replyToId === undefined || isReplyToId(replyToId)) return;
  const code = replyToId.includes("\0") ? "nul_in_field" : "invalid_request";
  throw new MeshError(code, "reply_to_id is a broker_message_id.", { field: "reply_to_id" });
}

/** The canonical text of a meta that is safe to hash and within its size limit. */
export function readMeta(meta: Meta | undefined): string {
  if (meta === undefined) return "";
  if (holdsNul(meta)) throw new MeshError("nul_in_field", undefined, { field: "meta" });
  readMentions(meta);
  const text = canonicalMeta(meta);
  if (text.length > limits.metaBytes || utf8Length(text) > limits.metaBytes) {
    throw new MeshError("payload_too_large", `meta is larger than ${limits.metaBytes} bytes.`, {
      field: "meta",
      limit_bytes: limits.metaBytes,
    });
  }
  return text;
}

function holdsNul(value: JsonValue): boolean {
  if (typeof value === "string") return value.includes("\0");
  if (typeof value !== "object" || value === null) return false;
  if (Array.isArray(value)) return value.some(holdsNul);
  return Object.entries(value).some(([key, inner]) => key.includes("\0") || holdsNul(inner));
}

/** The members that a message mentions, sorted and distinct, so that one set of mentions has one spelling. */
export function readMentions(meta: Meta | undefined): readonly string[] {
  const mentions = meta !== undefined && Object.hasOwn(meta, "mentions") ? meta.mentions : undefined;
  if (mentions === undefined) return [];
  const refuse = () => new MeshError("invalid_mentions", undefined, { field: "meta.mentions" });
  if (!Array.isArray(mentions) || mentions.length > limits.mentions) throw refuse();
  let previous = "";
  for (const key of mentions as JsonValue[]) {
    if (typeof key !== "string" || !isPublicKey(key) || key <= previous) throw refuse();
    previous = key;
  }
  return mentions as readonly string[];
}

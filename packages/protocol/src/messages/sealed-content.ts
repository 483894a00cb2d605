// The content of the box of a version "3" direct message: the body, and beside it everything that the broker could
// otherwise change unnoticed. Here are the layout, the padding, and the comparison with what the broker says; the
// cryptography is in the client package.
// Why: docs/decisions/0125.
import { encodeUtf8 } from "../encoding/utf8.ts";
import { MeshError } from "../errors/errors.ts";
import { parseOwnJsonText, StrictJsonError } from "../json/strict-json.ts";
import { textOf } from "../wire/history-item.ts";
import { isClientMessageId } from "./client-message-id.ts";
import { isReplyToId, type Meta, type Priority, priorities, readMeta } from "./envelope.ts";
import { limits } from "./limits.ts";
import { isName, isPublicKey } from "./names.ts";

export type SealedContent = {
  /** Sender and recipient are ed25519 public keys in hex. */
  readonly sender: string;
  readonly recipient: string;
  readonly clientMessageId: string;
  readonly replyToId: string | undefined;
  readonly priority: Priority;
  /** Named mailboxes at the sender and at the recipient. */
  readonly fromAgent: string | undefined;
  readonly toAgent: string | undefined;
  /** RFC 8785 text; "" where there is none. */
  readonly canonicalMeta: string;
  readonly body: Uint8Array;
};

/** A sealed body is larger than its content by the nonce and the authenticator. */
export const sealOverheadBytes = 40;

const lengthBytes = 4;
const headFields = 8;

/**
 * Length (4 bytes, big-endian) ‖ fields joined by 0x00, then length ‖ body, then zeros up to the next step.
 * `headLength` is where the length of the body begins; the bytes before it say everything except the body.
 */
export type EncodedContent = { readonly bytes: Uint8Array; readonly headLength: number };

/**
 * The same content always has the same bytes. `memory` provides a buffer of the requested size; its content does not
 * matter.
 */
export function encodeSealedContent(
  content: SealedContent,
  memory: (length: number) => Uint8Array = (length) => new Uint8Array(length),
): EncodedContent {
  const { sender, recipient, clientMessageId, replyToId, priority, fromAgent, toAgent, canonicalMeta, body } = content;
  const head = encodeUtf8(
    `${sender}\0${recipient}\0${clientMessageId}\0${replyToId ?? ""}\0${priority}\0${fromAgent ?? ""}\0${toAgent ?? ""}\0${canonicalMeta}`,
  );
  const headLength = lengthBytes + head.length;
  const bodyAt = headLength + lengthBytes;
  const end = bodyAt + body.length;
  const bytes = memory(paddedLength(end + sealOverheadBytes) - sealOverheadBytes);
  writeLength(bytes, 0, head.length);
  bytes.set(head, lengthBytes);
  writeLength(bytes, headLength, body.length);
  bytes.set(body, bodyAt);
  bytes.fill(0, end);
  return { bytes, headLength };
}

function writeLength(bytes: Uint8Array, at: number, length: number): void {
  bytes[at] = length >>> 24;
  bytes[at + 1] = length >>> 16;
  bytes[at + 2] = length >>> 8;
  bytes[at + 3] = length;
}

/**
 * Each step is about 12 % larger than the one before, and six steps double the size, so every power of two from 256 on
 * is a step.
 */
const stepsWithinADoubling = [256, 287, 323, 362, 406, 456] as const;

/** The first step that is at least the given length. Steps count sealed bytes, as they are sent. */
export function paddedLength(length: number): number {
  let factor = 1;
  while (256 * factor * 2 <= length) factor *= 2;
  for (const step of stepsWithinADoubling) if (step * factor >= length) return step * factor;
  return 256 * factor * 2;
}

/** Undefined where the bytes have another layout, or a field is not valid. Anything after the body is padding. */
export function readSealedContent(bytes: Uint8Array): SealedContent | undefined {
  const head = sectionAt(bytes, 0);
  const body = head === undefined ? undefined : sectionAt(bytes, lengthBytes + head.length);
  if (head === undefined || body === undefined) return undefined;
  const fields = textOf(head)?.split("\0");
  return fields?.length === headFields ? readFields(fields, body) : undefined;
}

function sectionAt(bytes: Uint8Array, at: number): Uint8Array | undefined {
  if (at + lengthBytes > bytes.length) return undefined;
  const start = at + lengthBytes;
  const length = new DataView(bytes.buffer, bytes.byteOffset + at, lengthBytes).getUint32(0);
  return length > bytes.length - start ? undefined : bytes.subarray(start, start + length);
}

function readFields(fields: readonly string[], body: Uint8Array): SealedContent | undefined {
  const [sender = "", recipient = "", clientMessageId = "", reply = "", priority = "", from = "", to = "", meta = ""] =
    fields;
  const isSound =
    isPublicKey(sender) &&
    isPublicKey(recipient) &&
    isClientMessageId(clientMessageId) &&
    (reply === "" || isReplyToId(reply)) &&
    (priorities as readonly string[]).includes(priority) &&
    (from === "" || isName(from)) &&
    (to === "" || isName(to)) &&
    isCanonicalMeta(meta);
  if (!isSound) return undefined;
  return {
    sender,
    recipient,
    clientMessageId,
    replyToId: reply === "" ? undefined : reply,
    priority: priority as Priority,
    fromAgent: from === "" ? undefined : from,
    toAgent: to === "" ? undefined : to,
    canonicalMeta: meta,
    body,
  };
}

/** A peer wrote the meta, and no broker could check it: it must be one that an honest sender's daemon accepts. */
function isCanonicalMeta(text: string): boolean {
  if (text === "") return true;
  if (text.length > limits.metaBytes) return false;
  try {
    const meta = parseOwnJsonText(text, limits.jsonDepth);
    const isObject = typeof meta === "object" && meta !== null && !Array.isArray(meta);
    return isObject && readMeta(meta as Meta) === text;
  } catch (error) {
    if (error instanceof StrictJsonError || error instanceof MeshError) return false;
    throw error;
  }
}

/** What the broker says about a sealed message. The broker never knows `meta`. */
export type BrokerLabels = Pick<
  SealedContent,
  "sender" | "recipient" | "clientMessageId" | "replyToId" | "priority"
> & {
  readonly meta: Meta | null;
};

/** The first of the broker's labels that differs from the content of the box. */
export function findRelabelled(content: SealedContent, labels: BrokerLabels): keyof BrokerLabels | undefined {
  if (labels.sender !== content.sender) return "sender";
  if (labels.recipient !== content.recipient) return "recipient";
  if (labels.clientMessageId !== content.clientMessageId) return "clientMessageId";
  if (labels.replyToId !== content.replyToId) return "replyToId";
  if (labels.priority !== content.priority) return "priority";
  return labels.meta === null ? undefined : "meta";
}

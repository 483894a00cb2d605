// An invite as people pass it around: one line that names the mesh and contains the secret that admits one new key. The
// broker stores only a hash of the secret.
import type { FromSchema, JSONSchema } from "json-schema-to-ts";
import { decodeBase64Url, encodeBase64Url } from "../encoding/base64url.ts";
import { encodeUtf8 } from "../encoding/utf8.ts";
import { MeshError } from "../errors/errors.ts";
import { isUuidV7 } from "../ids/ids.ts";
import { parseStrictJson } from "../json/strict-json.ts";
import { isMemberName, isName } from "../messages/names.ts";

export type Invite = {
  readonly broker: string;
  readonly mesh: string;
  readonly mesh_id: string;
  readonly secret: string;
  /** The name of the new member, where the inviter has fixed one. */
  readonly name?: string;
  /** The key that the broker must prove to hold before the secret is sent; absent in invites of earlier brokers. */
  readonly broker_key?: string;
  /** All addresses of the mesh's brokers, where there is more than one. */
  readonly brokers?: readonly string[];
  /** SHA-256, in hex, of the certificate, for a broker with a certificate of its own. */
  readonly cert_sha256?: string;
};

const prefix = "cmi1.";
const inviteCharacters = 4_096;
const secretCharacters = 128;
const brokersMax = 16;
const brokerPattern = /^(ws|http)s?:\/\//;
const digestPattern = /^[0-9a-f]{64}$/;

export function encodeInvite(invite: Invite): string {
  return prefix + encodeBase64Url(encodeUtf8(JSON.stringify(invite)));
}

export function decodeInvite(text: string): Invite {
  const refuse = () => new MeshError("invalid_invite", "The invite cannot be read; copy the whole line again.");
  if (!text.startsWith(prefix) || text.length > inviteCharacters) throw refuse();
  const bytes = decodeBase64Url(text.slice(prefix.length));
  if (bytes === undefined) throw refuse();
  let value: unknown;
  try {
    value = parseStrictJson(bytes, { maxDepth: 4 });
  } catch (cause) {
    throw new MeshError("invalid_invite", "The invite cannot be read; copy the whole line again.", {}, cause);
  }
  if (typeof value !== "object" || value === null) throw refuse();
  const { broker, mesh, mesh_id, secret, name, broker_key, brokers, cert_sha256 } = value as Record<string, unknown>;
  if (!isBrokerUrl(broker)) throw refuse();
  if (typeof mesh !== "string" || !isName(mesh)) throw refuse();
  if (typeof mesh_id !== "string" || !isUuidV7(mesh_id)) throw refuse();
  if (typeof secret !== "string" || secret === "" || secret.length > secretCharacters) throw refuse();
  if (name !== undefined && (typeof name !== "string" || !isMemberName(name))) throw refuse();
  // A field that is present and damaged is no reason to trust less: the whole invite is refused.
  if (broker_key !== undefined && !isDigest(broker_key)) throw refuse();
  if (brokers !== undefined && !isBrokerList(brokers)) throw refuse();
  if (cert_sha256 !== undefined && !isDigest(cert_sha256)) throw refuse();
  return {
    ...{ broker, mesh, mesh_id, secret },
    ...(name !== undefined && { name }),
    ...(broker_key !== undefined && { broker_key }),
    ...(brokers !== undefined && { brokers }),
    ...(cert_sha256 !== undefined && { cert_sha256 }),
  };
}

function isBrokerUrl(value: unknown): value is string {
  return typeof value === "string" && brokerPattern.test(value);
}

function isBrokerList(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.length > 0 && value.length <= brokersMax && value.every(isBrokerUrl);
}

/** 32 bytes in lower-case hex. */
function isDigest(value: unknown): value is string {
  return typeof value === "string" && digestPattern.test(value);
}

const publicKey = { type: "string", pattern: "^[0-9a-f]{64}$" } as const;
const signature = { type: "string", pattern: "^[0-9a-f]{128}$" } as const;

export const createMeshRequestSchema = {
  type: "object",
  additionalProperties: false,
  required: ["name", "owner", "signature"],
  properties: {
    name: { type: "string" },
    owner: {
      type: "object",
      additionalProperties: false,
      required: ["name", "pubkey"],
      properties: { name: { type: "string" }, pubkey: publicKey },
    },
    signature,
  },
} as const satisfies JSONSchema;

export type CreateMeshRequest = FromSchema<typeof createMeshRequestSchema>;

export const joinRequestSchema = {
  type: "object",
  additionalProperties: false,
  required: ["secret", "pubkey", "signature"],
  properties: {
    secret: { type: "string", minLength: 1, maxLength: secretCharacters },
    /** Absent: the name that the invite fixes. */
    name: { type: "string" },
    pubkey: publicKey,
    signature,
  },
} as const satisfies JSONSchema;

export type JoinRequest = FromSchema<typeof joinRequestSchema>;

// An invite as people pass it around: one line that says where the mesh is and carries the secret that lets one new
// key in. The broker stores only a hash of the secret.
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
  /** The name that whoever joins by it gets, where the inviter has fixed one. */
  readonly name?: string;
};

const prefix = "cmi1.";
const inviteCharacters = 2_048;
const secretCharacters = 128;
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
  const { broker, mesh, mesh_id, secret, name } = value as Record<string, unknown>;
  if (typeof broker !== "string" || !/^(ws|http)s?:\/\//.test(broker)) throw refuse();
  if (typeof mesh !== "string" || !isName(mesh)) throw refuse();
  if (typeof mesh_id !== "string" || !isUuidV7(mesh_id)) throw refuse();
  if (typeof secret !== "string" || secret === "" || secret.length > secretCharacters) throw refuse();
  if (name !== undefined && (typeof name !== "string" || !isMemberName(name))) throw refuse();
  return { broker, mesh, mesh_id, secret, ...(name !== undefined && { name }) };
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
    /** Absent: the one that the invite fixes. */
    name: { type: "string" },
    pubkey: publicKey,
    signature,
  },
} as const satisfies JSONSchema;

export type JoinRequest = FromSchema<typeof joinRequestSchema>;

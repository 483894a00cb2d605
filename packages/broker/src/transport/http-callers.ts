// Who calls over HTTP: the member behind the bearer token, asked of the store for every request, so that a revocation
// counts at once. Remembers whose token was good, and decides nothing by it.
import type { MembersStore } from "@claudemesh/members/ports";
import { authenticateTokenHash } from "@claudemesh/members/services/member-tokens";
import { MeshError } from "@claudemesh/protocol/errors";
import type { FastifyRequest } from "fastify";
import type { Caller } from "../operations/handler.ts";
import type { LookAhead } from "../operations/look-aheads.ts";
import { toMeshError } from "../storage-failure.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** Of the bearer token that it shows, which is read once; empty where it needs none. */
    tokenHash: string;
  }
}

export type CallingMembers = Pick<MembersStore, "findByToken">;

type AskedRequest = Pick<FastifyRequest, "tokenHash" | "params" | "body">;
type MeshParams = { readonly mesh: string };

type KnownCaller = { readonly wanted: string; readonly meshId: string };

/** Beyond these, the caller that was noted first is forgotten. */
const knownMax = 4_096;

export class HttpCallers {
  readonly #members: CallingMembers;
  /** By the token's hash: those whose token was good the last time, and the mesh that they asked for. */
  readonly #known = new Map<string, KnownCaller>();

  constructor(members: CallingMembers) {
    this.#members = members;
  }

  /** A mesh that does not exist and a token that is wrong look alike: an outsider learns nothing. */
  async ask(request: AskedRequest): Promise<Caller> {
    try {
      return await this.#find(request);
    } catch (error) {
      throw toMeshError(error);
    }
  }

  /**
   * The same for requests that begin with a look-up. Where the caller's token was good the last time, that look-up begins
   * beside the token's instead of behind it. Its result goes only to the member that the token stands for now, and for a
   * stranger the store looks up no more than the token.
   */
  async askAhead(request: AskedRequest, lookAhead: LookAhead): Promise<Caller> {
    const { tokenHash, body } = request;
    const { mesh: wanted } = request.params as MeshParams;
    const asked = this.#find(request);
    const known = this.#known.get(tokenHash);
    const isKnown = known?.wanted === wanted;
    const ahead = isKnown && isObject(body) ? lookAhead(known.meshId, body) : undefined;
    try {
      const caller = await asked;
      if (!isKnown) this.#note(tokenHash, { wanted, meshId: caller.mesh.id });
      return ahead === undefined ? caller : { ...ahead, mesh: caller.mesh, member: caller.member };
    } catch (error) {
      this.#known.delete(tokenHash);
      throw toMeshError(error);
    }
  }

  #find({ params, tokenHash }: AskedRequest): Promise<Caller> {
    return authenticateTokenHash({ store: this.#members }, (params as MeshParams).mesh, tokenHash);
  }

  #note(tokenHash: string, caller: KnownCaller): void {
    this.#known.set(tokenHash, caller);
    if (this.#known.size <= knownMax) return;
    for (const first of this.#known.keys()) {
      this.#known.delete(first);
      return;
    }
  }
}

export function bearerOf(request: Pick<FastifyRequest, "headers">): string {
  const match = /^Bearer ([\x21-\x7e]{1,512})$/i.exec(request.headers.authorization ?? "");
  if (match?.[1] === undefined) throw new MeshError("unauthorized", "Send Authorization: Bearer <token>.");
  return match[1];
}

function isObject(body: unknown): body is Readonly<Record<string, unknown>> {
  return typeof body === "object" && body !== null;
}

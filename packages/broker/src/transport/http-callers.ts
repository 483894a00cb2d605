// Who calls over HTTP: the member behind the bearer token, asked of the store for every request, so that a revocation
// counts at once. Remembers whose token was good, and decides nothing by it.
import { hashSecret } from "@claudemesh/members/credentials";
import { authenticateTokenHash } from "@claudemesh/members/services/member-tokens";
import { beginLookUp } from "@claudemesh/messages/services/accept";
import { MeshError } from "@claudemesh/protocol/errors";
import { isClientMessageId } from "@claudemesh/protocol/messages/client-message-id";
import type { FastifyRequest } from "fastify";
import type { BrokerContext } from "../context.ts";
import type { Caller } from "../operations/handler.ts";
import { toMeshError } from "../storage-failure.ts";

type HttpBroker = {
  readonly members: Pick<BrokerContext["members"], "addToken" | "revokeToken" | "findByToken">;
  readonly messages: Pick<BrokerContext["messages"], "accepts">;
  readonly nowMs: () => number;
};

type AskedRequest = Pick<FastifyRequest, "headers" | "params" | "body">;

/** Beyond these, whoever was noted first is forgotten. */
const knownMax = 4_096;

export class HttpCallers {
  readonly #broker: HttpBroker;
  /** The mesh's id, by how it was named and the token's hash: of those whose last send had a good token. */
  readonly #senders = new Map<string, string>();

  constructor(broker: HttpBroker) {
    this.#broker = broker;
  }

  /** A mesh that does not exist and a token that is wrong look alike: an outsider learns nothing. */
  async ask(request: AskedRequest): Promise<Caller> {
    return this.#find(wantedMesh(request), hashSecret(bearerOf(request)));
  }

  /**
   * The same for whoever sends. Where its token was good the last time, the send's id is looked up (B0) beside the token
   * instead of behind it. What is found is given to nobody but the member that the token stands for now, and a stranger
   * makes nobody look for more than a token.
   */
  async askSender(request: AskedRequest): Promise<Caller> {
    const [wanted, tokenHash] = [wantedMesh(request), hashSecret(bearerOf(request))];
    const key = `${Buffer.from(tokenHash).toString("base64")}/${wanted}`;
    const asked = this.#find(wanted, tokenHash);
    const lookUp = this.#lookAhead(this.#senders.get(key), request.body);
    try {
      const caller = await asked;
      this.#note(key, caller.mesh.id);
      return lookUp === undefined ? caller : { ...caller, lookUp };
    } catch (error) {
      this.#senders.delete(key);
      throw error;
    }
  }

  #lookAhead(meshId: string | undefined, body: unknown): Caller["lookUp"] {
    if (meshId === undefined || typeof body !== "object" || body === null) return undefined;
    const { client_message_id: id } = body as { client_message_id?: unknown };
    if (typeof id !== "string" || !isClientMessageId(id)) return undefined;
    const { messages, nowMs } = this.#broker;
    return beginLookUp({ store: messages.accepts, nowMs }, meshId, id);
  }

  async #find(wanted: string, tokenHash: Uint8Array): Promise<Caller> {
    try {
      return await authenticateTokenHash({ store: this.#broker.members }, wanted, tokenHash);
    } catch (error) {
      throw toMeshError(error);
    }
  }

  #note(key: string, meshId: string): void {
    this.#senders.set(key, meshId);
    if (this.#senders.size <= knownMax) return;
    for (const first of this.#senders.keys()) {
      this.#senders.delete(first);
      return;
    }
  }
}

export function bearerOf(request: Pick<FastifyRequest, "headers">): string {
  const match = /^Bearer ([\x21-\x7e]{1,512})$/i.exec(request.headers.authorization ?? "");
  if (match?.[1] === undefined) throw new MeshError("unauthorized", "Send Authorization: Bearer <token>.");
  return match[1];
}

function wantedMesh(request: Pick<FastifyRequest, "params">): string {
  return (request.params as { mesh: string }).mesh;
}

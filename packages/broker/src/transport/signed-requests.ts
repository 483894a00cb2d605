// Operations that a member signs one by one: over what the connection is made of, the operation, the request's id and its
// content. An attacker on the way of a connection in clear can insert any other frame, but none of these.
// Why: docs/decisions/0123.
import { verifySignature } from "@claudemesh/members/credentials";
import { MeshError } from "@claudemesh/protocol/errors";
import type { JsonObject } from "@claudemesh/protocol/json";
import type { OperationName } from "@claudemesh/protocol/wire/operations";
import { type HelloSession, operationBytes } from "@claudemesh/protocol/wire/signing";

export type SignedRequest = {
  readonly operation: OperationName;
  readonly id: number;
  readonly input: JsonObject;
  readonly signature: unknown;
};

export class SignedRequests {
  readonly #session: HelloSession;
  readonly #pubkey: string;
  #lastId = 0;

  constructor(session: HelloSession, pubkey: string) {
    this.#session = session;
    this.#pubkey = pubkey;
  }

  /** The refusal of a request that its member has not signed, or that was made before on this connection. */
  refuse({ operation, id, input, signature }: SignedRequest): MeshError | undefined {
    if (typeof signature !== "string" || !/^[0-9a-f]{128}$/.test(signature)) {
      return refusal(`${operation} carries its member's signature over its content; upgrade the client.`);
    }
    const bytes = operationBytes({ ...this.#session, operation, id, input });
    if (!verifySignature(this.#pubkey, bytes, signature)) {
      return refusal(`The signature of ${operation} is not over this content, on this connection, under this id.`);
    }
    if (id <= this.#lastId) return refusal(`The id of ${operation} is not above those of signed requests before it.`);
    this.#lastId = id;
    return undefined;
  }
}

function refusal(message: string): MeshError {
  return new MeshError("forbidden", message, { field: "signature" });
}

// One send, or many, as the bytes of an HTTP request, ready to be written again and again: only the ids inside change, in
// place.
import assert from "node:assert/strict";
import { idsOf, requestOf } from "../registrar/bench-request.ts";
import { clientIdCharacters } from "./client-ids.ts";

/** Where the id goes. */
const placeholder = "-".repeat(clientIdCharacters);

export type SendRequestBytes = {
  readonly bytes: Buffer;
  /** How many sends it carries, each with an id of its own. */
  readonly sends: number;
  readonly setIds: (nextId: () => string) => void;
  /** Every other answer ends the run. */
  readonly expectedStatus: number;
  /** Stands in the answer once for each send, where one answer is about many. */
  readonly expectedOfEach?: string;
};

/** To a daemon's POST /v1/send. */
export function formatSendRequest(to: string, message: string): SendRequestBytes {
  return formatRequest("/v1/send", [], { to, message }, 202);
}

/** To a daemon's POST /v1/send/many. */
export function formatManyRequest(to: string, message: string, sends: number): SendRequestBytes {
  const fields = { sends: Array(sends).fill({ to, message, client_message_id: placeholder }) };
  return { ...formatBody("/v1/send/many", [], fields, 200, sends), expectedOfEach: '{"status":202,' };
}

/** To a broker, as a member with a token; an id that was accepted before is answered 200 instead of 201. */
export function formatBrokerRequest(
  to: { readonly meshId: string; readonly token: string; readonly topic: string },
  body: string,
  expectedStatus: 200 | 201,
): SendRequestBytes {
  const path = `/v1/meshes/${to.meshId}/messages`;
  const fields = { destination: { kind: "topic", ref: to.topic }, body };
  return formatRequest(path, [`authorization: Bearer ${to.token}`], fields, expectedStatus);
}

/** An exact retry of a registration of the benchmark; its id is its key, its approval and its run. */
export function formatRegistrarRequest(to: { readonly meshId: string; readonly token: string }): SendRequestBytes {
  const path = `/v1/meshes/${to.meshId}/registrar/requests`;
  const fields = requestOf(idsOf(placeholder), "a-nonce-that-is-not-looked-at");
  return formatBody(path, [`authorization: Bearer ${to.token}`], fields, 200);
}

function formatRequest(
  path: string,
  headers: readonly string[],
  fields: object,
  expectedStatus: number,
): SendRequestBytes {
  return formatBody(path, headers, { ...fields, client_message_id: placeholder }, expectedStatus);
}

function formatBody(
  path: string,
  headers: readonly string[],
  fields: object,
  expectedStatus: number,
  sends = 1,
): SendRequestBytes {
  const body = JSON.stringify(fields);
  const head = [
    `POST ${path} HTTP/1.1`,
    "host: localhost",
    ...headers,
    "content-type: application/json",
    `content-length: ${Buffer.byteLength(body)}`,
    "\r\n",
  ].join("\r\n");
  const bytes = Buffer.from(head + body, "utf8");
  const idOffsets: number[] = [];
  for (let at = bytes.indexOf(placeholder); at >= 0; at = bytes.indexOf(placeholder, at + 1)) idOffsets.push(at);
  const offsetsPerSend = idOffsets.length / sends;
  assert(offsetsPerSend >= 1 && Number.isInteger(offsetsPerSend));
  return {
    bytes,
    sends,
    expectedStatus,
    setIds: (nextId) => {
      let id = "";
      for (const [at, offset] of idOffsets.entries()) {
        if (at % offsetsPerSend === 0) id = nextId();
        assert(id.length === clientIdCharacters, `an id of the load has ${clientIdCharacters} characters: ${id}`);
        bytes.write(id, offset, "latin1");
      }
    },
  };
}

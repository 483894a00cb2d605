// One POST /v1/send as bytes, ready to be written again and again: only the id inside changes, in place.
import assert from "node:assert/strict";
import { clientIdCharacters } from "./client-ids.ts";

export type SendRequestBytes = { readonly bytes: Buffer; readonly setId: (id: string) => void };

export function formatSendRequest(to: string, message: string): SendRequestBytes {
  const placeholder = "-".repeat(clientIdCharacters);
  const body = JSON.stringify({ to, message, client_message_id: placeholder });
  const head = [
    "POST /v1/send HTTP/1.1",
    "host: localhost",
    "content-type: application/json",
    `content-length: ${Buffer.byteLength(body)}`,
    "\r\n",
  ].join("\r\n");
  const bytes = Buffer.from(head + body, "utf8");
  const idOffset = bytes.lastIndexOf(placeholder);
  assert(idOffset > 0);
  return {
    bytes,
    setId: (id) => {
      assert(id.length === clientIdCharacters, `an id of the load has ${clientIdCharacters} characters: ${id}`);
      bytes.write(id, idOffset, "latin1");
    },
  };
}

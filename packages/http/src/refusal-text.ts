// A refusal as the bytes of an HTTP answer, for sockets that have no answer object of their own.
import { STATUS_CODES } from "node:http";
import type { MeshError } from "@claudemesh/protocol/errors";

/** The answer says that the connection ends with it. */
export function refusalText(refusal: MeshError): string {
  const body = JSON.stringify(refusal.toBody());
  const head = [
    `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]}`,
    "content-type: application/json",
    `content-length: ${Buffer.byteLength(body)}`,
    "connection: close",
  ];
  return `${head.join("\r\n")}\r\n\r\n${body}`;
}

// The published vectors, read from the protocol package, and the fingerprint of a request according to the contract.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { parseOwnJsonText } from "@claudemesh/protocol/json";
import { type AcceptRequest, readAcceptRequest } from "@claudemesh/protocol/messages/accept-request";
import { fingerprint, type Sha256 } from "@claudemesh/protocol/messages/fingerprint";

const require = createRequire(import.meta.url);

export function readVectors<T>(name: string): T {
  const path = require.resolve(`@claudemesh/protocol/vectors/${name}.json`);
  return parseOwnJsonText(readFileSync(path, "utf8")) as T;
}

export type FingerprintCase = {
  readonly name: string;
  readonly request: {
    readonly envelope_version?: string;
    readonly destination: { readonly kind: string; readonly ref: string };
    readonly reply_to_id?: string;
    readonly priority?: string;
    readonly meta_json?: string;
    readonly body?: string;
    readonly body_base64?: string;
  };
  readonly fingerprint: string;
  readonly prefix: string;
};

export type JsonVectors = {
  readonly accept: readonly { readonly name: string; readonly text?: string; readonly canonical: string }[];
  readonly refuse: readonly {
    readonly name: string;
    readonly text?: string;
    readonly hex?: string;
    readonly reason: string;
  }[];
};

export const sha256: Sha256 = {
  bytes: (data) => createHash("sha256").update(data).digest(),
  hex: (data) => createHash("sha256").update(data).digest("hex"),
};

/** The wire fingerprint of a send, 64 hex characters. */
export function fingerprintOf(send: object): string {
  return Buffer.from(fingerprint(sha256, readAcceptRequest(send as AcceptRequest).envelope)).toString("hex");
}

/** The exact text of a request whose meta is given as text. */
export function writeWithMeta(fields: object, metaJson: string | undefined): string {
  if (metaJson === undefined) return JSON.stringify(fields);
  return `${JSON.stringify(fields).slice(0, -1)},"meta":${metaJson}}`;
}

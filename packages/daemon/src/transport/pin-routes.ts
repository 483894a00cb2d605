// Routes for pinned names: which key each stands for, and trusting another one.

import { MeshError } from "@claudemesh/protocol/errors";
import { type PeerKey, peerKeySchema } from "@claudemesh/protocol/messages/local-requests";
import { isMemberName, isPublicKey } from "@claudemesh/protocol/messages/names";
import type { MemberDirectory } from "../services/member-directory.ts";
import type { PeerPins } from "../services/peer-pins.ts";
import { noQuery } from "./queries.ts";
import { ok, type Route } from "./route.ts";

export type PinApi = {
  readonly pins: Pick<PeerPins, "list" | "show" | "accept" | "trust">;
  readonly directory: Pick<MemberDirectory, "keysOf" | "nameOf">;
};

const pinParams = {
  type: "object",
  additionalProperties: false,
  required: ["name"],
  properties: { name: { type: "string", maxLength: 128 } },
} as const;

function nameIn(params: unknown): string {
  const name = (params as { name: string }).name.replace(/^@/, "");
  if (isMemberName(name)) return name;
  throw new MeshError("invalid_name", undefined, { field: "name" });
}

function keyIn(body: unknown): string {
  const { pubkey } = body as PeerKey;
  if (isPublicKey(pubkey)) return pubkey;
  throw new MeshError("invalid_request", "pubkey is the member's public key, 64 lower-case hex digits.", {
    field: "pubkey",
  });
}

export const pinRoutes: readonly Route<PinApi>[] = [
  {
    method: "GET",
    url: "/v1/pins",
    summary: "Names that were written to from here, and the key that each is pinned to",
    schema: { querystring: noQuery },
    handle: ({ pins, directory }) => ok({ items: pins.list(directory) }),
  },
  {
    method: "GET",
    url: "/v1/pins/:name",
    summary: "One name, pinned or not, with the code to compare with its member by voice",
    schema: { querystring: noQuery, params: pinParams },
    handle: async ({ pins, directory }, { params }) => ok({ ...(await pins.show(nameIn(params), directory)) }),
  },
  {
    method: "POST",
    url: "/v1/pins/:name/trust",
    summary: "Pin the key that the name has now, whatever it was before",
    schema: { querystring: noQuery, params: pinParams, body: peerKeySchema },
    handle: async ({ pins, directory }, { params, body }) =>
      ok({ ...(await pins.accept(nameIn(params), keyIn(body), directory, false)) }),
  },
  {
    method: "POST",
    url: "/v1/pins/:name/verify",
    summary: "Pin the key that the name has now, and say that its code was compared",
    schema: { querystring: noQuery, params: pinParams, body: peerKeySchema },
    handle: async ({ pins, directory }, { params, body }) =>
      ok({ ...(await pins.accept(nameIn(params), keyIn(body), directory, true)) }),
  },
];

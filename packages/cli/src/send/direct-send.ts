// A send without a daemon: resolves the address with the broker, seals a direct message as the daemon would, and gives
// the frame's input. The same id and content make the same bytes, so that sending again is a duplicate, not a conflict.

import type { BrokerCall } from "@claudemesh/client/broker";
import type { MeshPaths } from "@claudemesh/client/home";
import { nodeSha256 } from "@claudemesh/client/internal/node-sha256";
import { readKeyFile } from "@claudemesh/client/keys";
import { composeEnvelope, loadSealer } from "@claudemesh/client/seal";
import { MeshError } from "@claudemesh/protocol/errors";
import { type AcceptRequest, writeAcceptRequest } from "@claudemesh/protocol/messages/accept-request";
import { type Destination, parseAddress } from "@claudemesh/protocol/messages/addresses";
import { isClientMessageId } from "@claudemesh/protocol/messages/client-message-id";
import { refuseDestination, refuseMemberName } from "@claudemesh/protocol/messages/destination-refusal";
import { readSendContent, type SendRequest } from "@claudemesh/protocol/messages/send-request";
import { readAll } from "../mesh/member.ts";

export async function buildDirectSend(
  paths: MeshPaths,
  request: SendRequest & { readonly client_message_id: string },
  call: BrokerCall,
): Promise<AcceptRequest> {
  const content = readSendContent(request);
  const clientMessageId = request.client_message_id;
  if (!isClientMessageId(clientMessageId)) throw new MeshError("invalid_client_message_id");
  const keys = readKeyFile(paths.keypair);
  const destination = await resolve(paths, request.to, keys.ed25519.public_key, call);
  const sealer = await loadSealer(keys);
  const { envelope } = composeEnvelope({ sealer, sha256: nodeSha256 }, { clientMessageId, destination, content });
  return writeAcceptRequest(clientMessageId, envelope);
}

const notSent = "Nothing was sent.";

/** The broker's own words are short, and name no next step. */
export function refusedDirectly(error: unknown, { destination }: AcceptRequest): unknown {
  const code = error instanceof MeshError ? error.code : undefined;
  const isDestination = code === "destination_not_found" || code === "not_subscribed";
  return isDestination ? refuseDestination(code, destination, notSent) : error;
}

async function resolve(paths: MeshPaths, to: string, self: string, call: BrokerCall): Promise<Destination> {
  const address = parseAddress(to);
  if (address.type === "resolved") return address.destination;
  if (address.type === "self") return { kind: "dm", ref: self };
  const members = await readAll<{ pubkey: string; name: string }>(call, "members.list");
  const candidates = members.filter((member) => member.name === address.name).map((member) => member.pubkey);
  const [only, ...others] = candidates;
  if (only === undefined) throw refuseMemberName(address.name, notSent);
  if (others.length > 0) throw new MeshError("destination_ambiguous", undefined, { candidates });
  const { usePeerKey } = await import("@claudemesh/daemon/offline");
  await usePeerKey(paths, address.name, only);
  return { kind: "dm", ref: only };
}

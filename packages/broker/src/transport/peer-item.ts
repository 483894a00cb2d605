// A peer as it travels, the same in a list and in a push.
import type { Peer } from "@claudemesh/messages/ports/presence";
import type { PeerItem } from "@claudemesh/protocol/wire/frames";

export function toPeerItem({ pubkey, name, role, connectedAtMs, profile }: Peer): PeerItem {
  return { pubkey, name, role, connected_at: connectedAtMs, ...profile };
}

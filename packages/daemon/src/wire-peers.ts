// Puts together what knows the members of the mesh: the broker's list of them, and the keys that names are pinned to here.
import { createMemberDirectory, type MemberDirectory, type MemberDirectoryPorts } from "./services/member-directory.ts";
import { type NameOf, PeerPins, type PeerPinsPorts } from "./services/peer-pins.ts";
import type { DaemonStores } from "./stores/sqlite/open-stores.ts";

export type PeersWiring = Omit<MemberDirectoryPorts, "store" | "onListed"> &
  Omit<PeerPinsPorts, "store"> & { readonly stores: Pick<DaemonStores, "members" | "pins"> };

export type Peers = {
  readonly directory: MemberDirectory;
  readonly pins: PeerPins;
  /** As messages are shown with it: no name that would be read as somebody else's. */
  readonly nameOf: NameOf;
};

export function wirePeers({ stores, ...wiring }: PeersWiring): Peers {
  const pins = new PeerPins({ ...wiring, store: stores.pins });
  const onListed = () => pins.compare(directory);
  const directory = createMemberDirectory({ ...wiring, store: stores.members, onListed });
  return { directory, pins, nameOf: (pubkey, remembered) => pins.nameOf(directory, pubkey, remembered) };
}

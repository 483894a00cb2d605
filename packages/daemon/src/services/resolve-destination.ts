// From what a sender wrote as `to` to the destination that both layers hash. A name is looked up in the list on disk
// first; only a name that is not there makes the sender wait for the broker.
import { MeshError } from "@claudemesh/protocol/errors";
import type { Address, Destination } from "@claudemesh/protocol/messages/addresses";
import { refuseDestination, refuseMemberName } from "@claudemesh/protocol/messages/destination-refusal";
import type { BrokerLink } from "../ports.ts";
import type { DestinationDirectory, DestinationState } from "./destination-directory.ts";
import type { MemberDirectory } from "./member-directory.ts";
import type { PeerPins } from "./peer-pins.ts";

export type ResolvePorts = {
  readonly ownPubkey: string;
  readonly directory: MemberDirectory;
  readonly link: Pick<BrokerLink, "whenOnline">;
  readonly destinations: Pick<DestinationDirectory, "known" | "mayAsk" | "find">;
  readonly pins: Pick<PeerPins, "refusal" | "use">;
};

/** How long a sender waits for the broker before an unknown name is refused. */
const waitForBrokerMs = 5_000;

export type LocalResolution =
  | { readonly type: "found"; readonly destination: Destination }
  | { readonly type: "key_changed"; readonly name: string; readonly refusal: MeshError }
  | { readonly type: "unknown"; readonly name: string }
  | { readonly type: "ambiguous"; readonly name: string; readonly candidates: readonly string[] };

/** With what is known here and now. */
export function resolveLocally(
  ports: Pick<ResolvePorts, "ownPubkey" | "directory" | "pins">,
  address: Address,
): LocalResolution {
  switch (address.type) {
    case "resolved":
      return { type: "found", destination: address.destination };
    case "self":
      return { type: "found", destination: { kind: "dm", ref: ports.ownPubkey } };
    case "member_name": {
      const [ref, ...others] = ports.directory.keysOf(address.name);
      if (ref === undefined) return { type: "unknown", name: address.name };
      if (others.length > 0) return { type: "ambiguous", name: address.name, candidates: [ref, ...others] };
      const refusal = ports.pins.refusal(address.name, ref);
      if (refusal !== undefined) return { type: "key_changed", name: address.name, refusal };
      return { type: "found", destination: { kind: "dm", ref } };
    }
  }
}

/** True where the broker has to be asked before a message for the destination is taken, and can be. */
export function mustAskAbout({ ownPubkey, destinations }: ResolvePorts, destination: Destination): boolean {
  return destination.ref !== ownPubkey && destinations.known(destination) === undefined && destinations.mayAsk;
}

/**
 * Asks the broker about a name that is not known here, and whether a message for its destination would be taken. Throws
 * where it would not; what the broker cannot be asked about is taken.
 */
export async function resolveReachable(ports: ResolvePorts, address: Address): Promise<Destination> {
  const destination = await resolveName(ports, address);
  const state = await findState(ports, destination);
  if (state?.refusal === undefined) return destination;
  const isStaleName = address.type === "member_name" && (await ports.directory.refresh());
  if (!isStaleName) throw refusalOf(destination, state.refusal);
  // The name may stand for another member by now, or for none.
  const current = await resolveName(ports, address);
  const { refusal } = (await findState(ports, current)) ?? {};
  if (refusal !== undefined) throw refusalOf(current, refusal);
  return current;
}

/** Throws where the broker says that it takes no messages for the destination. */
export async function requireReachable(
  ports: Pick<ResolvePorts, "ownPubkey" | "destinations">,
  destination: Destination,
): Promise<void> {
  const state = await findState(ports, destination);
  if (state?.refusal !== undefined) throw refusalOf(destination, state.refusal);
}

async function findState(
  { ownPubkey, destinations }: Pick<ResolvePorts, "ownPubkey" | "destinations">,
  destination: Destination,
): Promise<DestinationState | undefined> {
  return destination.ref === ownPubkey ? undefined : destinations.find(destination);
}

const notQueued = "Nothing was queued.";

function refusalOf(destination: Destination, refusal: NonNullable<DestinationState["refusal"]>): MeshError {
  return refuseDestination(refusal, destination, notQueued);
}

/** Asks the broker about a name that is not known here; throws where no member, or more than one, has it. */
async function resolveName(ports: ResolvePorts, address: Address): Promise<Destination> {
  let resolution = resolveLocally(ports, address);
  if (resolution.type === "found") return resolution.destination;
  let asked = false;
  if (resolution.type === "unknown") {
    asked = (await ports.link.whenOnline(waitForBrokerMs)) && (await ports.directory.refresh());
    resolution = resolveLocally(ports, address);
  }
  switch (resolution.type) {
    case "found":
      return resolution.destination;
    case "key_changed":
      throw resolution.refusal;
    case "unknown":
      if (asked) throw refuseMemberName(resolution.name, notQueued);
      throw new MeshError(
        "destination_not_found",
        `No member called ${resolution.name} is known here, and the broker could not be asked. ${notQueued} Send again when the broker is back, or to dm:<public key>.`,
        { field: "to" },
      );
    case "ambiguous":
      throw new MeshError("destination_ambiguous", undefined, {
        field: "to",
        candidates: resolution.candidates,
      });
  }
}

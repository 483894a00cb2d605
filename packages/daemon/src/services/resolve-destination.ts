// From what a sender wrote as `to` to the destination that both layers hash. A name is looked up in the list on disk
// first; only a name that is not there makes the sender wait for the broker.
import { MeshError } from "@claudemesh/protocol/errors";
import type { Address, Destination } from "@claudemesh/protocol/messages/addresses";
import type { BrokerLink } from "../ports.ts";
import type { MemberDirectory } from "./member-directory.ts";

export type ResolvePorts = {
  readonly ownPubkey: string;
  readonly directory: MemberDirectory;
  readonly link: Pick<BrokerLink, "whenOnline">;
};

/** How long a sender waits for the broker before an unknown name is refused. */
const waitForBrokerMs = 5_000;

export type LocalResolution =
  | { readonly type: "found"; readonly destination: Destination }
  | { readonly type: "unknown"; readonly name: string }
  | { readonly type: "ambiguous"; readonly name: string; readonly candidates: readonly string[] };

/** With what is known here and now. */
export function resolveLocally(ports: Omit<ResolvePorts, "link">, address: Address): LocalResolution {
  switch (address.type) {
    case "resolved":
      return { type: "found", destination: address.destination };
    case "self":
      return { type: "found", destination: { kind: "dm", ref: ports.ownPubkey } };
    case "member_name": {
      const [ref, ...others] = ports.directory.keysOf(address.name);
      if (ref === undefined) return { type: "unknown", name: address.name };
      if (others.length > 0) return { type: "ambiguous", name: address.name, candidates: [ref, ...others] };
      return { type: "found", destination: { kind: "dm", ref } };
    }
  }
}

/** Asks the broker about a name that is not known here; throws where nobody, or more than one, has it. */
export async function resolveDestination(ports: ResolvePorts, address: Address): Promise<Destination> {
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
    case "unknown":
      throw new MeshError(
        "destination_not_found",
        asked
          ? `No member of this mesh is called ${resolution.name}.`
          : `No member called ${resolution.name} is known here, and the broker could not be asked.`,
        { field: "to" },
      );
    case "ambiguous":
      throw new MeshError("destination_ambiguous", undefined, {
        field: "to",
        candidates: resolution.candidates,
      });
  }
}

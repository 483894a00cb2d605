// What a sender may write as `to`, and the destination that it names. A member's name is resolved elsewhere, because
// only the daemon knows the list of members.
import { MeshError } from "../errors/errors.ts";
import { limits } from "./limits.ts";
import { isMemberName, isName, isPublicKey } from "./names.ts";

export const destinationKinds = ["topic", "dm", "queue"] as const;
export type DestinationKind = (typeof destinationKinds)[number];

/** Where a message goes, as both layers hash it: topic name, recipient's public key, or queue name. */
export type Destination = { readonly kind: DestinationKind; readonly ref: string };

export type Address =
  | { readonly type: "resolved"; readonly destination: Destination }
  | { readonly type: "member_name"; readonly name: string }
  | { readonly type: "self" };

export function parseAddress(to: string): Address {
  const address = to.length > limits.addressCharacters ? undefined : readAddress(to);
  if (address === undefined) throw new MeshError("invalid_address", describeMistake(to), { field: "to" });
  return address;
}

/** A name without its sign is the most common mistake, and only the sender knows what was meant. */
function describeMistake(to: string): string {
  const forms = "#topic, @name, @self, topic:name, dm:<public key hex> or queue:<id>";
  if (isPublicKey(to)) return `The field "to" is an address, and this is a bare public key: write dm:${to}.`;
  if (!isName(to)) return `The field "to" is an address: ${forms}.`;
  return `The field "to" is an address, and ${to} is a bare name: write @${to} for a member, #${to} for a topic, or queue:${to}.`;
}

function readAddress(to: string): Address | undefined {
  if (to === "@self") return { type: "self" };
  if (to.startsWith("#")) return named("topic", to.slice(1));
  if (to.startsWith("topic:")) return named("topic", to.slice(6));
  if (to.startsWith("queue:")) return named("queue", to.slice(6));
  if (to.startsWith("dm:")) {
    const ref = to.slice(3);
    return isPublicKey(ref) ? { type: "resolved", destination: { kind: "dm", ref } } : undefined;
  }
  if (to.startsWith("@")) {
    const name = to.slice(1);
    return isMemberName(name) ? { type: "member_name", name } : undefined;
  }
  return undefined;
}

function named(kind: "topic" | "queue", ref: string): Address | undefined {
  return isName(ref) ? { type: "resolved", destination: { kind, ref } } : undefined;
}

/** Throws unless a destination received on the wire has the form its kind asks for. */
export function checkDestination(destination: Destination): void {
  const valid = destination.kind === "dm" ? isPublicKey(destination.ref) : isName(destination.ref);
  if (!valid) throw new MeshError("invalid_address", undefined, { field: "destination.ref" });
}

// The text of a refusal that is due to a message's destination: it tells the sender what to do next.
import { MeshError } from "../errors/errors.ts";
import type { Destination } from "./addresses.ts";

export type DestinationRefusal = "destination_not_found" | "not_subscribed";

/** `end` says what happened to the message. */
export function refuseDestination(code: DestinationRefusal, { kind, ref }: Destination, end: string): MeshError {
  const next = nextSteps[code === "not_subscribed" ? code : kind](ref);
  return new MeshError(code, `${next} ${end}`, { field: "to", destination: { kind, ref } });
}

/** The refusal where a name was given instead of a public key. */
export function refuseMemberName(name: string, end: string): MeshError {
  const message = `No member of this mesh is called ${name}; ${membersListed} ${end}`;
  return new MeshError("destination_not_found", message, { field: "to" });
}

const membersListed = "`claudemesh mesh members` lists those that there are.";

const nextSteps = {
  topic: (name: string) => `There is no topic ${name}; create it with \`claudemesh topic create ${name}\`.`,
  queue: (id: string) => `There is no queue ${id}; create it with \`claudemesh queue create ${id}\`.`,
  dm: (pubkey: string) => `${pubkey} is no member of this mesh, or no longer one; ${membersListed}`,
  not_subscribed: (name: string) =>
    `Only subscribers may post to ${name}; subscribe with \`claudemesh topic subscribe ${name}\`.`,
} as const;

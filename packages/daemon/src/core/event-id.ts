// Ids of events. A message's event has the message's own id. Any other event has the id of the last message before it,
// a dot, and a number: so that whichever event a reader saw last, its id says which messages come next.
import { MeshError } from "@claudemesh/protocol/errors";
import { isUlid } from "@claudemesh/protocol/ids";

/** Before every message. */
export const firstPosition = "0".repeat(26);

export function eventIdAfter(position: string, number: number): string {
  return `${position}.${number}`;
}

/** The message after which to go on. */
export function readLastEventId(text: string): string {
  const [position = "", number, ...rest] = text.split(".");
  const isOurs = isUlid(position) && rest.length === 0 && (number === undefined || /^[0-9]{1,16}$/.test(number));
  if (isOurs) return position;
  const message = "Last-Event-ID is the id of an event of this daemon.";
  throw new MeshError("invalid_request", message, { field: "last_event_id" });
}

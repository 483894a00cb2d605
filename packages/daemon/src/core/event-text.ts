// Events as text/event-stream, and their ids. A message's event has the message's own id. Any other event has the id of
// the last message before it, a dot, and a number, so that the id of the last event that a reader saw always says which
// messages come next. Data is one line of JSON, which never holds a line break, so it needs one field.
import { MeshError } from "@claudemesh/protocol/errors";
import { isUlid } from "@claudemesh/protocol/ids";
import { writeStrictJson } from "@claudemesh/protocol/json";

export type EventKind =
  | "message"
  | "peer_join"
  | "peer_leave"
  | "broker_status"
  | "peer_key_changed"
  | "outbox"
  | "outbox_pressure_high"
  | "lagged";

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

export function encodeEvent(kind: EventKind, id: string, data: object): string {
  return encodeEventText(kind, id, writeStrictJson(data));
}

/** For data that is JSON text already. */
export function encodeEventText(kind: EventKind, id: string, json: string): string {
  return `event: ${kind}\nid: ${id}\ndata: ${json}\n\n`;
}

/** Says how long a reader waits before it connects again. */
export const openingText = "retry: 1000\n\n";
/** A comment, which readers ignore; it shows that the connection is alive. */
export const heartbeatText = ": still here\n\n";

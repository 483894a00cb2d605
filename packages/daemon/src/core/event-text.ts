// Events as text/event-stream. Data is one line of JSON, which never holds a line break, so that it needs one field.
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

export function encodeEvent(kind: EventKind, id: string, data: object): string {
  return encodeEventText(kind, id, writeStrictJson(data));
}

/** For data that is JSON text already. */
export function encodeEventText(kind: EventKind, id: string, json: string): string {
  return `event: ${kind}\nid: ${id}\ndata: ${json}\n\n`;
}

/** How long a reader waits before it connects again, and that there is somebody here. */
export const openingText = "retry: 1000\n\n";
export const heartbeatText = ": still here\n\n";

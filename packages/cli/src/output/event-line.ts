// One event of the daemon as people read it: on a line.
import type { DaemonEvent } from "@claudemesh/client/daemon";
import { describeBody, describeSource } from "./inbox-line.ts";
import { shortKey, showMember } from "./members.ts";
import { cutToColumns, neutraliseLine } from "./printable.ts";

export function eventLine(event: DaemonEvent, columns: number | undefined): string {
  const line = neutraliseLine(`${event.kind.padEnd(13)}  ${describeEvent(event)}`);
  return columns === undefined ? line : cutToColumns(line, Math.max(columns, 1));
}

function describeEvent(event: DaemonEvent): string {
  switch (event.kind) {
    case "message": {
      const { sender_name, sender_pubkey } = event.data;
      return `${describeSource(event.data)}  ${showMember(sender_name, sender_pubkey)}  ${describeBody(event.data)}`;
    }
    case "peer_join": {
      const { name, pubkey, trust } = event.data;
      const warning = trust === "changed" ? "  NOT THE KEY THAT IS KNOWN FOR THIS NAME" : "";
      return `${name} (${shortKey(pubkey)})${warning}`;
    }
    case "peer_leave":
      return `${event.data.name ?? ""} (${shortKey(event.data.pubkey)})`.trim();
    case "peer_key_changed": {
      const { name, pinned_fingerprint, fingerprint } = event.data;
      return `${name}: the key was ${pinned_fingerprint} and is now ${fingerprint}; nothing is sent to this name`;
    }
    case "broker_status": {
      const { state, reason, detail, note } = event.data;
      const shown = reason === "not_our_broker" ? `${state}, NOT OUR BROKER` : state;
      const more = detail ?? note;
      return more === undefined ? shown : `${shown}: ${more}`;
    }
    case "outbox":
      return `${event.data.client_message_id}  ${event.data.status}`;
    case "outbox_pressure_high":
      return `${event.data.used_bytes} of ${event.data.max_bytes} bytes are used; done rows make room, then sends are refused`;
    case "lagged":
      return `this reader was too slow and ${event.data.events_lost} events are lost; messages go on without a gap`;
  }
}

// One message of the inbox as people read it, in cells or on a line.
import type { InboxItem } from "@claudemesh/client/daemon";
import { type Cell, cellText } from "./cell.ts";
import { showMember } from "./members.ts";
import { cutToColumns, neutraliseLine } from "./printable.ts";
import { timeCell } from "./times.ts";

export const inboxHeader = ["RECEIVED", "WHERE", "FROM", "MESSAGE"];

export function inboxCells(item: InboxItem): Cell[] {
  return [
    timeCell(item.received_at),
    describeSource(item),
    showMember(item.sender_name, item.sender_pubkey),
    describeBody(item),
  ];
}

/** A direct message that was not sealed may have been written by the broker itself. */
export function describeSource({ topic, sealed }: InboxItem): string {
  if (topic !== null) return `#${topic}`;
  return sealed === false ? "dm, NOT SEALED" : "dm";
}

/** For messages that are printed as they come, when it is not known how wide the next one is. */
export function inboxLine(item: InboxItem, columns: number | undefined): string {
  const line = neutraliseLine(inboxCells(item).map(cellText).join("  "));
  return columns === undefined ? line : cutToColumns(line, Math.max(columns, 1));
}

export function describeBody(item: InboxItem): string {
  if (item.unreadable === "relabelled") return "(the broker changed what is said about it: do not trust it)";
  if (item.unreadable === true) return "(sealed, and not readable with this member's keys)";
  return item.body ?? `(${item.body_base64?.length ?? 0} base64 characters of data)`;
}

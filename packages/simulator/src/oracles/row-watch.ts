// Every step of every outbox row, as SQLite itself reports it: only steps that the contract lists, and what never
// changes does not change. A late answer that brought an aborted row back would show here.
import { canTransition, type OutboxStatus, outboxStatuses } from "@claudemesh/protocol/messages/outbox-row";
import type { Disk } from "../world/disk.ts";
import { Violation } from "./violation.ts";

const triggers = `
  CREATE TEMP TRIGGER simulator_moved AFTER UPDATE OF status ON main.outbox WHEN NEW.status IS NOT OLD.status
    BEGIN SELECT simulator_moved(NEW.client_message_id, OLD.status, NEW.status); END;
  CREATE TEMP TRIGGER simulator_changed AFTER UPDATE ON main.outbox
    WHEN NEW.payload IS NOT OLD.payload OR NEW.request_fingerprint IS NOT OLD.request_fingerprint
      OR NEW.enqueued_at IS NOT OLD.enqueued_at OR NEW.client_message_id IS NOT OLD.client_message_id
    BEGIN SELECT simulator_moved(NEW.client_message_id, 'what it was', 'something else'); END;
  CREATE TEMP TRIGGER simulator_removed AFTER DELETE ON main.outbox WHEN OLD.status IS NOT 'done'
    BEGIN SELECT simulator_moved(OLD.client_message_id, OLD.status, 'removed'); END;`;

export function watchRows(disk: Disk, daemon: string, onViolation: (violation: Violation) => void): void {
  disk.connection.function("simulator_moved", (id: unknown, from: unknown, to: unknown) => {
    if (!isListed(String(from), String(to))) {
      onViolation(new Violation("row_moved_wrongly", `${daemon}: ${String(id)} went from ${from} to ${to}`));
    }
    return null;
  });
  disk.exec(triggers);
}

function isListed(from: string, to: string): boolean {
  return isStatus(from) && isStatus(to) && canTransition(from, to);
}

function isStatus(word: string): word is OutboxStatus {
  return (outboxStatuses as readonly string[]).includes(word);
}

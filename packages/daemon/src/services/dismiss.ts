// Letting a row go that is dead, or that waits though its member was removed from the mesh: `POST /v1/outbox/dismiss` without HTTP. It is never tried again and stays for the audit; what ends
// is the alarm.
// Why: docs/decisions/0136.
import type { Dismissed } from "@claudemesh/client/daemon";
import { MeshError } from "@claudemesh/protocol/errors";
import type { DismissRequest } from "@claudemesh/protocol/messages/local-requests";
import type { OutboxRecord } from "../core/outbox-row.ts";
import type { Clock, DismissStore, Log, OutboxStore } from "../ports.ts";

export type DismissPorts = {
  readonly outbox: Pick<OutboxStore, "inspect">;
  readonly dismissals: DismissStore;
  readonly clock: Pick<Clock, "nowMs">;
  readonly log: Log;
};

/** Again it answers with the first mark, so that a lost answer costs nothing. */
export async function dismissRow(ports: DismissPorts, { id, why }: DismissRequest): Promise<Dismissed> {
  const { outbox, dismissals, clock, log } = ports;
  const found = outbox.inspect(id)?.row;
  if (found === undefined) throw new MeshError("not_found", `The outbox has no row ${id}.`);
  if (await dismissals.dismiss({ id: found.id, by: "operator", why, nowMs: clock.nowMs() })) {
    log.info({ event: "row_dismissed", outbox_id: found.id, client_message_id: found.client_message_id }, why);
  }
  const row = outbox.inspect(found.id)?.row ?? found;
  return dismissedBody(row) ?? refuse(row);
}

function dismissedBody(row: OutboxRecord): Dismissed | undefined {
  const { dismissed_at, dismissed_by, dismissed_why } = row;
  if (row.status !== "dead" || dismissed_at === null) return undefined;
  const { id, client_message_id, status } = row;
  return {
    id,
    client_message_id,
    status,
    dismissed_at,
    dismissed_by: dismissed_by ?? "",
    dismissed_why: dismissed_why ?? "",
  };
}

function refuse({ id, client_message_id, status }: OutboxRecord): never {
  const message = `The row is ${status}; only a dead row can be dismissed, or one that waits after its member was removed from the mesh.`;
  throw new MeshError("not_dismissible", message, { outbox_id: id, client_message_id, status });
}

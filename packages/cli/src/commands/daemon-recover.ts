// `claudemesh daemon recover`: saves what can be read of a damaged outbox. Never runs by itself, because somebody should
// know what it says. The daemon must not be running.
import type { Recovery } from "@claudemesh/daemon/offline";
import type { Command } from "commander";
import { type CommonOptions, examples, run, withMesh } from "../command.ts";
import { pathsFor, type Shell } from "../shell.ts";

/** More are in the JSON value. */
const shownIds = 20;

export function define(command: Command, shell: Shell): void {
  withMesh(command).action((options: CommonOptions) =>
    run(shell, options, async () => {
      const { salvageOutbox } = await import("@claudemesh/daemon/offline");
      const recovery = await salvageOutbox(pathsFor(shell, options));
      return { value: showRecovery(recovery), text: describe(recovery) };
    }),
  );
  examples(command, "claudemesh daemon recover", "claudemesh daemon recover --mesh acme --json");
}

function showRecovery(recovery: Recovery): Record<string, unknown> {
  const { mesh, outcome } = recovery;
  if (recovery.outcome !== "recovered") return { mesh, outcome };
  const { rowsRead, rowsLost, lostIds, tombstonesRead, tombstonesLost, fateUnknown } = recovery.salvage;
  return {
    mesh,
    outcome,
    problem: recovery.problem,
    set_aside: recovery.setAside,
    rows_read: rowsRead,
    rows_lost: rowsLost,
    lost_client_message_ids: lostIds,
    tombstones_read: tombstonesRead,
    tombstones_lost: tombstonesLost,
    fate_unknown: fateUnknown,
  };
}

function describe(recovery: Recovery): string {
  const { mesh } = recovery;
  if (recovery.outcome === "sound") return `The outbox of ${mesh} is sound; nothing was changed.`;
  const start = `Start the daemon:  claudemesh daemon up --mesh ${mesh}`;
  if (recovery.outcome === "finished") {
    return `The recovery that was cut off is finished; the damaged outbox lies beside the new one.\n${start}`;
  }
  const { rowsRead, rowsLost, lostIds, tombstonesRead, tombstonesLost, fateUnknown } = recovery.salvage;
  const ids = lostIds.slice(0, shownIds).map((id) => `  ${id}`);
  const more = lostIds.length > shownIds ? [`  and ${lostIds.length - shownIds} more, see --json`] : [];
  return [
    `The outbox of ${mesh} was damaged: ${recovery.problem}`,
    `${rowsRead} rows and ${tombstonesRead} tombstones were read; ${rowsLost} and ${tombstonesLost} that are known of were not.`,
    ...(ids.length === 0 ? [] : ["Lost, as far as their ids are known:", ...ids, ...more]),
    `${fateUnknown} rows are sent again under their own ids; the broker knows those that it has.`,
    "Other ids may be missing. Whoever sends one of them again is taken for new here, and the broker decides.",
    `The damaged file is kept: ${recovery.setAside}`,
    start,
  ].join("\n");
}

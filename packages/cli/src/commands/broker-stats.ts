// `claudemesh broker stats`: what a store holds, mesh by mesh. Reads the store itself, also while a broker serves on it.
import type { StoreStats } from "@claudemesh/broker/offline";
import type { Command } from "commander";
import { brokerConfigOf, type StoreOptions, withStore } from "../broker-store.ts";
import { examples, type Outcome, run, withTimes } from "../command.ts";
import { formatTable } from "../output/table.ts";
import { timeCell } from "../output/times.ts";
import type { Shell } from "../shell.ts";

export function define(command: Command, shell: Shell): void {
  withTimes(withStore(command)).action((options: StoreOptions) => run(shell, options, () => stats(shell, options)));
  examples(command, "claudemesh broker stats", "claudemesh broker stats --store postgres://mesh@db/mesh --json");
}

async function stats(shell: Shell, options: StoreOptions): Promise<Outcome> {
  const { statsOfStore } = await import("@claudemesh/broker/offline");
  const found = await statsOfStore(brokerConfigOf(shell, options).store);
  const meshes = found.meshes.map((mesh) => ({
    mesh: mesh.name,
    mesh_id: mesh.id,
    rows: mesh.rows,
    last_history_id: mesh.lastHistoryId,
    oldest_unsettled_at: mesh.oldestUnsettledAtMs ?? null,
    oldest_message_at: mesh.oldestMessageAtMs ?? null,
    accepted_last_hour: mesh.acceptedLastHour,
    accepted_last_day: mesh.acceptedLastDay,
  }));
  const value = { store: found.place, size_bytes: found.sizeBytes, meshes };
  return {
    value,
    text: [`${found.place}: ${found.sizeBytes} bytes`, ...found.meshes.map((m) => describe(m, shell))].join("\n\n"),
  };
}

function describe(mesh: StoreStats["meshes"][number], shell: Shell): string {
  const times = [
    ["oldest open delivery", timeCell(mesh.oldestUnsettledAtMs, "none")],
    ["oldest message", timeCell(mesh.oldestMessageAtMs, "none")],
    ["accepted, last hour and day", `${mesh.acceptedLastHour} and ${mesh.acceptedLastDay}`],
    ["last history id", String(mesh.lastHistoryId)],
  ];
  const rows = Object.entries(mesh.rows).map(([name, count]) => [name.replaceAll("_", " "), String(count)]);
  return formatTable([`mesh ${mesh.name}`, mesh.id], [...times, ...rows], shell.columns);
}

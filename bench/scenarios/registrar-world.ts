// What the registrar's scenarios stand on: stores with so many registrations, and the processes that register in them.
import { DatabaseSync } from "node:sqlite";
import { addMeshes, type BenchMesh, type MeshWish, wishMeshes } from "../broker/bench-meshes.ts";
import type { StoreKind, StoreLocation } from "../broker/store-location.ts";
import { askPostgres, type MadeStore, type StoreMaker } from "../broker/store-pair.ts";
import { MeasuringProcess } from "../processes/measuring-process.ts";
import type { RegistrarMesh } from "../registrar/bench-registration.ts";
import type { RegistrarOrder, RegistrarResult } from "../registrar/registrar-order.ts";
import { seedRegistrations } from "../registrar/seed-registrations.ts";
import type { RunSettings } from "./scenario.ts";

export const callers = 64;
export const smallRows = 1_000;

export type Registering = MeasuringProcess<RegistrarOrder, RegistrarResult>;

/** Of a run: the same mesh, down to keys and token, in every store. */
export type SharedMesh = { readonly wish: MeshWish; mesh: BenchMesh | undefined };

export const shareMesh = (): SharedMesh => {
  const [wish] = wishMeshes("bench", 1);
  if (wish === undefined) throw new Error("one mesh was wished for");
  return { wish, mesh: undefined };
};

export async function makeSeeded(
  stores: StoreMaker,
  kind: StoreKind,
  at: { readonly folder: string; readonly label: string },
  shared: SharedMesh,
  rows: number,
): Promise<MadeStore & { readonly mesh: BenchMesh }> {
  const made = await stores.make(kind, at.folder, at.label);
  const [mesh] = await addMeshes(made.location, [shared.wish], shared.mesh === undefined ? [] : [shared.mesh]);
  if (mesh === undefined) throw new Error("there is no mesh to register in");
  shared.mesh = mesh;
  await seedRegistrations(made.location, mesh, rows);
  return { ...made, mesh };
}

export const registrarMesh = ({ id, keys }: BenchMesh): RegistrarMesh => ({ id, keys });

export const serviceScript = new URL("../registrar/in-process-registrar.ts", import.meta.url);

export const startService = (settings: RunSettings, location: StoreLocation): Promise<Registering> =>
  MeasuringProcess.start(settings.closing, serviceScript, JSON.stringify(location));

const statementScripts: Readonly<Record<StoreKind, URL>> = {
  sqlite: new URL("../registrar/sqlite-statements.ts", import.meta.url),
  postgres: new URL("../registrar/postgres-statements.ts", import.meta.url),
};

export const startStatements = (
  settings: RunSettings,
  location: StoreLocation,
  mesh: BenchMesh,
): Promise<Registering> =>
  MeasuringProcess.start(
    settings.closing,
    statementScripts[location.kind],
    location.kind === "sqlite" ? location.path : JSON.stringify(location),
    JSON.stringify(registrarMesh(mesh)),
  );

/** Registrations that the store holds, read on a connection of its own. */
export async function countRegistrations(location: StoreLocation): Promise<number> {
  if (location.kind === "postgres") {
    return Number(await askPostgres(location.url, "SELECT count(*) FROM mesh.registrar_registration"));
  }
  const db = new DatabaseSync(location.path, { timeout: 10_000 });
  const { n } = db.prepare("SELECT count(*) AS n FROM registrar_registration").get() ?? {};
  db.close();
  return Number(n);
}

export function get<Value>(map: ReadonlyMap<StoreKind, Value>, kind: StoreKind): Value {
  const value = map.get(kind);
  if (value === undefined) throw new Error(`there is no ${kind} here`);
  return value;
}

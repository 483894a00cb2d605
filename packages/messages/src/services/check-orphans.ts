// Looks through a whole store for rows that do not fit together: every rule, mesh by mesh, page by page, with a bounded
// memory. Changes nothing. The caller sets the pace.
// Why: docs/decisions/0054.
import assert from "node:assert/strict";
import type { RowCursor, RuleStore, RuleText } from "@claudemesh/storage/row-rules";
import type { HousekeepingStore } from "../ports/housekeeping.ts";
import type { MeshCheck } from "../ports/orphans.ts";
import { orphanChecks } from "../stores/orphan-checks.ts";

export type OrphanPorts = {
  readonly store: {
    readonly housekeeping: Pick<HousekeepingStore, "meshes">;
    readonly orphans: RuleStore;
  };
  /** Rules of other packages on the same store, looked at in the same walk. */
  readonly others?: readonly RuleStore[];
  readonly nowMs: () => number;
  /** Which meshes to look at; all of them unless said otherwise. */
  readonly isWanted?: (meshId: string) => Promise<boolean>;
  /** A mesh has been looked through. */
  readonly onMesh?: (meshId: string, check: MeshCheck) => Promise<void>;
};

export type OrphanFinding = {
  readonly name: string;
  readonly rule: string;
  readonly invariant: string | null;
  /** How many rows were looked at. */
  readonly rows: number;
  readonly found: number;
  /** Some of them: `mesh id/key`. */
  readonly examples: readonly string[];
};

export type OrphanReport = {
  readonly ok: boolean;
  readonly found: number;
  readonly meshes: number;
  readonly checks: readonly OrphanFinding[];
};

/** Of messages alone. */
export const orphanCheckNames = Object.keys(orphanChecks) as (keyof typeof orphanChecks)[];
const strayName = "rows_without_mesh";
const rowsPerPage = 200;
const meshesPerPage = 256;
const examplesMax = 10;

/** Yields after every page, so that others get their turn; returns what was found. */
export async function* checkOrphans(ports: OrphanPorts): AsyncGenerator<void, OrphanReport> {
  const { store, others = [] } = ports;
  const ruleStores = [store.orphans, ...others];
  const ledger = new OrphanLedger(ruleStores);
  for (const rules of ruleStores) {
    ledger.addStray(await rules.strayMeshes());
    yield;
  }
  let after = "";
  for (;;) {
    const meshes = await store.housekeeping.meshes(after, meshesPerPage);
    for (const meshId of meshes) {
      if (ports.isWanted !== undefined && !(await ports.isWanted(meshId))) continue;
      ledger.meshes += 1;
      const broken = new Map<string, number>();
      for (const rules of ruleStores) yield* checkMesh(ports, ledger, rules, meshId, broken);
      const found = [...broken.values()].reduce((sum, each) => sum + each, 0);
      await ports.onMesh?.(meshId, { endedAtMs: ports.nowMs(), found, rules: [...broken.keys()].sort() });
    }
    const last = meshes.at(-1);
    if (last === undefined) return ledger.report();
    after = last;
  }
}

/** From beginning to end, without a rest. */
export async function checkAllOrphans(ports: OrphanPorts): Promise<OrphanReport> {
  const checking = checkOrphans(ports);
  for (;;) {
    const { done, value } = await checking.next();
    if (done === true) return value;
  }
}

async function* checkMesh(
  { nowMs }: OrphanPorts,
  ledger: OrphanLedger,
  { rules, checkPage }: RuleStore,
  meshId: string,
  broken: Map<string, number>,
): AsyncGenerator<void, void> {
  for (const [name, { rowsPerPage: limit = rowsPerPage }] of Object.entries(rules)) {
    let after: RowCursor | undefined;
    do {
      const page = await checkPage(name, meshId, after, { nowMs: nowMs(), limit });
      ledger.add(name, meshId, page.rows, page.found);
      if (page.found.length > 0) broken.set(name, (broken.get(name) ?? 0) + page.found.length);
      after = page.next;
      yield;
    } while (after !== undefined);
  }
}

class OrphanLedger {
  meshes = 0;
  readonly #rules: readonly (readonly [name: string, RuleText])[];
  readonly #counted = new Map<string, { rows: number; found: number; examples: string[] }>();

  constructor(ruleStores: readonly RuleStore[]) {
    this.#rules = ruleStores.flatMap(({ rules }) => Object.entries(rules));
    const names = new Set(this.#rules.map(([name]) => name));
    assert(names.size === this.#rules.length, "two packages have a rule of the same name");
  }

  add(name: string, meshId: string, rows: number, found: readonly string[]): void {
    const entry = this.#entry(name);
    entry.rows += rows;
    entry.found += found.length;
    const room = examplesMax - entry.examples.length;
    entry.examples.push(...found.slice(0, room).map((key) => [meshId, key].filter((part) => part !== "").join("/")));
  }

  addStray(found: readonly string[]): void {
    const entry = this.#entry(strayName);
    entry.found += found.length;
    entry.examples.push(...found.slice(0, Math.max(0, examplesMax - entry.examples.length)));
  }

  #entry(name: string) {
    const entry = this.#counted.get(name) ?? { rows: 0, found: 0, examples: [] };
    this.#counted.set(name, entry);
    return entry;
  }

  report(): OrphanReport {
    const stray = { name: strayName, rule: "every row belongs to a mesh that exists", invariant: null };
    const checks: OrphanFinding[] = [
      { ...stray, ...this.#entry(strayName) },
      ...this.#rules.map(([name, { rule, invariant = null }]) => ({ name, rule, invariant, ...this.#entry(name) })),
    ];
    const found = checks.reduce((sum, each) => sum + each.found, 0);
    return { ok: found === 0, found, meshes: this.meshes, checks };
  }
}

// The proof against live schemas: whole it holds, and without any one part of it, it does not, and says which.
import { describe, expect, test } from "vitest";
import { proveSurface, surfaceTables } from "../../core/surface.ts";
import type { RegistrarWorld } from "./world.ts";

export function describeSurface(world: () => RegistrarWorld): void {
  const prove = async () => proveSurface(await world().broker.store.inspect());

  test("a migrated store is fit: every criterion from (a) to (h) holds", async () => {
    const proof = await prove();
    expect(proof.criteria.filter(({ holds }) => !holds)).toEqual([]);
    expect(proof.criteria.map(({ criterion }) => criterion).join("")).toBe("abcdefgh");
    expect(proof.fit).toBe(true);
  });

  test("every column of every table is asked for", async () => {
    for (const [table, columns] of Object.entries(surfaceTables)) {
      const live = await liveColumns(world(), table);
      expect(live.toSorted(), table).toEqual([...columns].toSorted());
    }
  });

  describe("a trigger, an index or a check that is added, or weakened, closes the registrar", () => {
    test("a unique key that an attempt is part of", async () => {
      await world().harness.query(
        `CREATE UNIQUE INDEX registrar_ledger ON ${world().table("registrar_consume")}
         (mesh_id, logical_request_key, attempt_id)`,
      );
      const proof = await prove();
      await world().harness.query(dropIndex(world(), "registrar_ledger"));
      expect(proof).toMatchObject({
        fit: false,
        criteria: [{ criterion: "a", holds: false }, {}, {}, {}, {}, {}, {}, {}],
      });
    });
  });
}

async function liveColumns(world: RegistrarWorld, table: string): Promise<string[]> {
  const rows = await world.harness.query(
    world.harness.kind === "sqlite"
      ? `SELECT name FROM pragma_table_info('${table}')`
      : `SELECT column_name AS name FROM information_schema.columns
         WHERE table_schema = 'mesh' AND table_name = '${table}'`,
  );
  return rows.map(({ name }) => String(name));
}

function dropIndex(world: RegistrarWorld, name: string): string {
  return `DROP INDEX ${world.harness.kind === "sqlite" ? name : `mesh.${name}`}`;
}

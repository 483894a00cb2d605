// The registrar's statements alone on SQLite: those of a registration as the product makes it, for so many registrations
// per transaction, in a bare loop over node:sqlite. No decision, no digest, no promise. Arguments: the file's path, and
// the mesh as JSON.
import process from "node:process";
import type { SQLInputValue, StatementSync } from "node:sqlite";
import { createSqliteRegistrarStore } from "@claudemesh/registrar/sqlite";
import { GroupCommit } from "@claudemesh/storage/group-commit";
import { openSqlite, type Sqlite, type SqliteStatement } from "@claudemesh/storage/sqlite";
import { openDurableFile } from "../layers/durable-file.ts";
import { createClientIds } from "../load/client-ids.ts";
import { Latencies } from "../load/latencies.ts";
import { serveOrders } from "../processes/orders.ts";
import { approveAll, type RegistrarMesh, registrarPorts } from "./bench-registration.ts";
import { idsOf } from "./bench-request.ts";
import {
  type RecordedStatement,
  RegistrationRecorder,
  type RegistrationValues,
  valuesOf,
} from "./recorded-registration.ts";
import { approvalsPerStep, type RegistrarOrder, type RegistrarResult } from "./registrar-order.ts";

const [path, meshJson] = process.argv.slice(2);
if (path === undefined || meshJson === undefined) throw new Error("give the path of the file and the mesh");
const mesh = JSON.parse(meshJson) as RegistrarMesh;

const opened = openSqlite({ path });
const recorder = new RegistrationRecorder();
const recorded = recording(opened);
const { steps, bind } = await recorder.record(createSqliteRegistrarStore(recorded, recordingCommit(recorded)), mesh);
const store = createSqliteRegistrarStore(opened, new GroupCommit(opened));

/** A connection that reports to the recorder what it is asked. */
function recording(db: Sqlite): Sqlite {
  const recordingOf = (asLists: boolean) => (text: string) => {
    const statement: SqliteStatement<unknown> = asLists ? db.sqlTuples(text) : db.sql(text);
    const call =
      (method: "get" | "all" | "run") =>
      (...values: SQLInputValue[]) => {
        recorder.sent({ text, name: undefined, reads: method !== "run", asLists, values });
        recorder.answered();
        return statement[method](...(values as Parameters<typeof statement.get>));
      };
    return { get: call("get"), all: call("all"), run: call("run") };
  };
  return {
    sql: recordingOf(false),
    sqlTuples: recordingOf(true),
  } as unknown as Sqlite;
}

function recordingCommit(tx: Sqlite): GroupCommit {
  const submit = async <R>(job: (db: Sqlite) => R): Promise<R> =>
    opened.transaction(() => {
      recorder.begin(true);
      const result = job(tx);
      recorder.end();
      return result;
    });
  const read = async <R>(job: (db: Sqlite) => R): Promise<R> => job(tx);
  return { submit, read } as unknown as GroupCommit;
}

const db = openDurableFile(path);

const begin = db.prepare("BEGIN IMMEDIATE");
// Reads share a snapshot, as the product's do.
const beginReading = db.prepare("BEGIN DEFERRED");
const commit = db.prepare("COMMIT");
const prepared = steps.map(({ inTransaction, groups }) => ({
  inTransaction,
  statements: groups.flat().map((statement) => ({
    statement: prepare(statement),
    reads: statement.reads,
    bind: bind(statement),
  })),
}));

function prepare({ text, asLists = false }: RecordedStatement): StatementSync {
  const statement = db.prepare(text);
  statement.setReturnArrays(asLists);
  return statement;
}

const nextId = createClientIds("time_ordered");
const ports = registrarPorts(store);

async function approveSome(): Promise<RegistrationValues[]> {
  const wanted = Array.from({ length: approvalsPerStep }, () => idsOf(nextId()));
  await approveAll({ store, isSignedBy: ports.isSignedBy }, mesh, wanted);
  return wanted.map((ids) => valuesOf(ids, mesh.keys.ed25519.public_key));
}

function runBatch(rows: readonly (readonly SQLInputValue[][][])[]): void {
  for (const [at, { inTransaction, statements }] of prepared.entries()) {
    if (inTransaction) begin.run();
    else beginReading.run();
    for (const row of rows) {
      const values = row[at] ?? [];
      for (const [index, { statement, reads }] of statements.entries()) {
        if (reads) statement.get(...(values[index] ?? []));
        else statement.run(...(values[index] ?? []));
      }
    }
    commit.run();
  }
}

/** Values in the order of steps and statements. */
const bound = (row: RegistrationValues) =>
  prepared.map(({ statements }) => statements.map((each) => each.bind(row) as SQLInputValue[]));

async function runForAWhile({ callers, durationMs }: RegistrarOrder): Promise<RegistrarResult> {
  const times = new Latencies();
  let busyMs = 0;
  let answered = 0;
  while (busyMs < durationMs) {
    const rows = (await approveSome()).map(bound);
    while (rows.length > 0 && busyMs < durationMs) {
      const batch = rows.splice(0, callers);
      const startedAtMs = performance.now();
      runBatch(batch);
      const elapsedMs = performance.now() - startedAtMs;
      times.add(elapsedMs);
      busyMs += elapsedMs;
      answered += batch.length;
    }
  }
  return { answered, perSecond: answered / (busyMs / 1_000), ...times.figures() };
}

serveOrders<RegistrarOrder, RegistrarResult>(runForAWhile);

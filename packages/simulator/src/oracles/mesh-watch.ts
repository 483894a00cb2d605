// Shows the ledgers of spaces, registrar and once what they judge: rows as soon as they are committed, before any caller
// hears of them, and answers as they leave a broker. What they object to is reported; nothing here disturbs a run.
import type { OnceEpoch, OnceSettlement } from "@claudemesh/protocol/registrar/once-state";
import { spaceName } from "../core/plan.ts";
import type { Disk } from "../world/disk.ts";
import type { World } from "../world/world.ts";
import type { HistoryLedger } from "./history-ledger.ts";
import { OnceWatch } from "./once-watch.ts";
import { type ApprovalRow, type CompensationRow, type ConsumeRow, RegistrarLedger } from "./registrar-ledger.ts";
import { type EdgeAnswer, SessionWatch } from "./session-watch.ts";
import { type LogRow, SpaceLedger, sendPrefix } from "./space-ledger.ts";
import { Violation } from "./violation.ts";

type Input = Readonly<Record<string, unknown>>;
type Judge = (answer: EdgeAnswer) => void;

const ignore: Judge = () => undefined;

export class MeshWatch {
  readonly spaces = new SpaceLedger();
  readonly sessions = new SessionWatch();
  readonly registrar = new RegistrarLedger();
  readonly once = new OnceWatch();
  readonly #disk: Disk;
  readonly #meshId: string;
  readonly #history: HistoryLedger;
  readonly #fail: (error: unknown) => void;
  /** Messages of commits whose commit has not been seen yet. */
  #unexplained: string[] = [];

  constructor(world: World, history: HistoryLedger, fail: (error: unknown) => void) {
    this.#disk = world.broker.disk;
    this.#meshId = world.broker.mesh.id;
    this.#history = history;
    this.#fail = fail;
    history.onNoted = ({ clientMessageId }) => {
      if (clientMessageId.startsWith(sendPrefix)) this.#unexplained.push(clientMessageId);
    };
    this.#watchRows();
    world.edge = (type, _pubkey, input) => {
      const judge = this.#judgeOf(type, input as Input);
      return (answer) => this.#guard(() => judge(answer));
    };
  }

  #watchRows(): void {
    const disk = this.#disk;
    const each = <Row>(table: string, key: string, note: (row: Row) => void) => {
      const find = disk.sql<Row>(`SELECT * FROM ${table} WHERE mesh_id = ? AND ${key} = ?`);
      disk.onWritten(table, `row.${key}`, (keys) => {
        for (const row of keys.flatMap((value) => find.all(this.#meshId, value))) this.#guard(() => note(row));
      });
    };
    disk.onWritten("space_commit", "row.seq", () => this.#guard(() => this.#noteCommits()));
    each<ApprovalRow>("registrar_approval", "approval_id", (row) => this.registrar.noteApproval(row));
    each<ConsumeRow>("registrar_consume", "logical_request_key", (row) => this.registrar.noteConsumed(row));
    each<VerificationRow>("registrar_verification", "logical_request_key", (row) =>
      this.registrar.noteVerified(row.logical_request_key, row.state),
    );
    each<CompensationRow>("registrar_compensation", "logical_request_key", (row) =>
      this.registrar.noteCompensated(row),
    );
    const epochs = disk.sql<OnceRow>("SELECT * FROM once_claim WHERE mesh_id = ? AND key = ? ORDER BY epoch");
    disk.onWritten("once_claim", "row.key", (keys) => {
      for (const key of keys) this.#guard(() => this.once.noteStored(key, epochs.all(this.#meshId, key).map(toEpoch)));
    });
    disk.onCommitted(() => {
      if (this.#unexplained.length > 0) this.#guard(() => this.#checkSends());
    });
  }

  #noteCommits(): void {
    const rows = this.#disk
      .sql<LogRow>("SELECT * FROM space_commit WHERE mesh_id = ? AND space_id = ? AND seq > ? ORDER BY seq")
      .all(this.#meshId, spaceName, this.spaces.model.lastSeq);
    for (const row of rows) {
      this.spaces.note(row, (sender, id) => this.#history.find(sender, id) !== undefined);
    }
  }

  #checkSends(): void {
    const torn = this.#unexplained.find((id) => this.spaces.carrierOf(id) === undefined);
    this.#unexplained = [];
    if (torn !== undefined) throw new Violation("sends_torn", `${torn} was accepted without its commit`);
  }

  #judgeOf(type: string, input: Input): Judge {
    if (type === "space.open") return this.sessions.opening();
    if (type === "space.commit" || type === "space.branch.create" || type === "space.branch.delete") {
      const { sessionId, sessionToken, commit, ...rest } = input;
      const { localSeq } = (commit ?? rest) as { readonly localSeq: number };
      const writer = { sessionId: String(sessionId), sessionToken: String(sessionToken), localSeq };
      return this.sessions.writing(writer, JSON.stringify([type, commit ?? rest]));
    }
    if (type.startsWith("registrar.")) {
      return this.registrar.asking(type, input.logical_request_key as string | undefined);
    }
    if (type.startsWith("once.") && type !== "once.get") {
      return (answer) => this.once.heard(type, String(input.key), input, answer);
    }
    return ignore;
  }

  /** Refusals that the audit tells of, one by one or as a number. */
  countAudited(): number {
    const sum = (sql: string) => this.#disk.sql<{ n: number }>(sql).get()?.n ?? 0;
    return (
      sum("SELECT count(*) AS n FROM registrar_audit WHERE kind = 'refusal'") +
      sum("SELECT coalesce(sum(suppressed), 0) AS n FROM registrar_audit") +
      sum("SELECT coalesce(sum(suppressed), 0) AS n FROM registrar_audit_window")
    );
  }

  #guard(judge: () => void): void {
    try {
      judge();
    } catch (error) {
      this.#fail(error);
    }
  }
}

type VerificationRow = { logical_request_key: string; state: "registered_closed" | "verify_failed" };

type OnceRow = {
  epoch: number;
  claim_id: string;
  holder_pubkey: string;
  inputs_fingerprint: string;
  lease_seconds: number;
  claimed_at: number;
  lease_until: number;
  settled_how: OnceSettlement["how"] | null;
  settled_by: string | null;
  settled_at: number | null;
  result: string | null;
};

function toEpoch(row: OnceRow): OnceEpoch {
  const { settled_how: how, settled_by: by, settled_at: atMs, result } = row;
  const settled = result === null ? { how, by, atMs } : { how, by, atMs, result };
  return {
    epoch: row.epoch,
    claimId: row.claim_id,
    holder: row.holder_pubkey,
    inputsFingerprint: row.inputs_fingerprint,
    leaseSeconds: row.lease_seconds,
    claimedAtMs: row.claimed_at,
    leaseUntilMs: row.lease_until,
    settlement: how === null ? undefined : (settled as OnceSettlement),
  };
}

// The eleven rows of the send table: each by name against the published vectors, and the table as a whole.
import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { fingerprintPrefix } from "./fingerprint.ts";
import { type OutboxStatus, outboxStatuses } from "./outbox-row.ts";
import { answerExisting, answerInserted, decideSend, type ExistingSend, type SendAnswer } from "./send-decision.ts";

interface VectorExisting {
  outbox_id: string;
  status: OutboxStatus;
  fingerprint: string;
  broker_message_id: string | null;
  history_id: number | null;
  last_error: string | null;
}
interface Vectors {
  client_message_id: string;
  outbox_id_if_new: string;
  request_fingerprint: string;
  rows: { name: string; existing: VectorExisting | null; answer: { status: number; body: Record<string, unknown> } }[];
}

const vectors: Vectors = JSON.parse(readFileSync(new URL("../../vectors/send-table.json", import.meta.url), "utf8"));

const fromHex = (hex: string) => Uint8Array.from(Buffer.from(hex, "hex"));
const offered = fromHex(vectors.request_fingerprint);

function existingFrom(row: VectorExisting): ExistingSend {
  return {
    outboxId: row.outbox_id,
    status: row.status,
    fingerprint: fromHex(row.fingerprint),
    brokerMessageId: row.broker_message_id ?? undefined,
    historyId: row.history_id ?? undefined,
    lastError: row.last_error ?? undefined,
  };
}

function answer(existing: ExistingSend | undefined): SendAnswer {
  const decision = decideSend(existing, offered);
  if (decision.type === "insert") {
    return answerInserted(vectors.client_message_id, vectors.outbox_id_if_new, offered);
  }
  if (existing === undefined) throw new Error("an answer from a row that does not exist");
  return answerExisting(vectors.client_message_id, existing, decision, offered);
}

/** The bytes of a body less its words for people, after checking that those stand where they belong. */
function bytesWithoutMessage(body: Record<string, unknown>): string {
  const { message, ...rest } = body;
  if ("error" in body) {
    expect(message).toMatch(/^[A-Z].+\.$/);
    expect(Object.keys(body).slice(0, 3)).toEqual(["error", "message", "retryable"]);
  } else {
    expect(message).toBeUndefined();
  }
  return JSON.stringify(rest);
}

describe("the send table", () => {
  it.each(vectors.rows)("answers: $name", ({ existing, answer: expected }) => {
    const given = answer(existing === null ? undefined : existingFrom(existing));
    expect(given.status).toBe(expected.status);
    expect(bytesWithoutMessage(given.body)).toBe(JSON.stringify(expected.body));
  });

  it("has eleven rows: none, and every status with and without a matching fingerprint", () => {
    const names = outboxStatuses.flatMap((status) => [`${status}, match`, `${status}, mismatch`]);
    expect(vectors.rows.map((row) => row.name).toSorted()).toEqual(["no row", ...names].toSorted());
  });

  it("decides each row as one closed outcome", () => {
    const decisions = vectors.rows.map(({ name, existing }) => {
      const decision = decideSend(existing === null ? undefined : existingFrom(existing), offered);
      return [name, "conflict" in decision ? decision.conflict : decision.type];
    });
    expect(Object.fromEntries(decisions)).toEqual({
      "no row": "insert",
      "pending, match": "queued_already",
      "pending, mismatch": "outbox_pending_fingerprint_mismatch",
      "inflight, match": "queued_already",
      "inflight, mismatch": "outbox_inflight_fingerprint_mismatch",
      "done, match": "done_already",
      "done, mismatch": "outbox_done_fingerprint_mismatch",
      "dead, match": "outbox_dead_fingerprint_match",
      "dead, mismatch": "outbox_dead_fingerprint_mismatch",
      "aborted, match": "outbox_aborted_fingerprint_match",
      "aborted, mismatch": "outbox_aborted_fingerprint_mismatch",
    });
  });

  it("says something in every conflict that tells people what to do", () => {
    const messages = vectors.rows.flatMap(({ existing }) => {
      const { status, body } = answer(existing === null ? undefined : existingFrom(existing));
      return status === 409 ? [String(body.message)] : [];
    });
    expect(messages).toHaveLength(7);
    for (const message of messages) expect(message).toContain("send with a new id");
  });
});

describe("a dead row", () => {
  it("gives an empty reason where it has none, never no reason", () => {
    const existing: ExistingSend = {
      outboxId: "o",
      status: "dead",
      fingerprint: offered,
      brokerMessageId: undefined,
      historyId: undefined,
      lastError: undefined,
    };
    expect(answer(existing).body.reason).toBe("");
  });
});

describe("any send", () => {
  const fingerprint = fc.constantFrom(offered, fromHex("00".repeat(32)), fromHex("ff".repeat(32)));
  const existing: fc.Arbitrary<ExistingSend> = fc.record({
    outboxId: fc.string({ minLength: 1 }),
    status: fc.constantFrom(...outboxStatuses),
    fingerprint,
    brokerMessageId: fc.option(fc.uuid(), { nil: undefined }),
    historyId: fc.option(fc.nat(), { nil: undefined }),
    lastError: fc.option(fc.string(), { nil: undefined }),
  });

  it("is inserted if and only if its id has no row", () => {
    let inserted = 0;
    fc.assert(
      fc.property(fc.option(existing, { nil: undefined, freq: 3 }), (row) => {
        const isInsert = decideSend(row, offered).type === "insert";
        if (isInsert) inserted += 1;
        expect(isInsert).toBe(row === undefined);
      }),
      { numRuns: 500 },
    );
    expect(inserted).toBeGreaterThan(10);
  });

  it("with another fingerprint than its row is a conflict, whatever the row's state", () => {
    let mismatches = 0;
    fc.assert(
      fc.property(existing, (row) => {
        if (Buffer.from(row.fingerprint).equals(offered)) return;
        mismatches += 1;
        const given = answer(row);
        expect(given.status).toBe(409);
        expect(given.body).toMatchObject({
          error: "idempotency_key_reused",
          retryable: false,
          conflict: `outbox_${row.status}_fingerprint_mismatch`,
          daemon_fingerprint_prefix: fingerprintPrefix(offered),
          stored_fingerprint_prefix: fingerprintPrefix(row.fingerprint),
        });
      }),
      { numRuns: 300 },
    );
    expect(mismatches).toBeGreaterThan(50);
  });

  it("gets the same answer each time it is repeated", () => {
    fc.assert(
      fc.property(existing, (row) => {
        expect(answer(row)).toEqual(answer({ ...row, fingerprint: row.fingerprint.slice() }));
      }),
      { numRuns: 100 },
    );
  });
});

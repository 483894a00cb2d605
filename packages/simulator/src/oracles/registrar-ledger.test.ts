// That what the registrar's rules forbid is found, in rows and in answers made by hand.
import { beforeEach, expect, test } from "vitest";
import { RegistrarLedger } from "./registrar-ledger.ts";

let ledger: RegistrarLedger;

const approve = (approval_id: string, effect: number, more: object = {}) =>
  ledger.noteApproval({
    approval_id,
    run_id: `run-${effect}`,
    purpose: "register",
    logical_request_key: null,
    not_before: 0,
    not_after: 1_000,
    revoked_at: null,
    ...more,
  });
const consume = (key: string, effect: number, approval_id: string, consumed_at = 10) =>
  ledger.noteConsumed({
    logical_request_key: key,
    run_id: `run-${effect}`,
    approval_id,
    registration_id: `id of ${key}`,
    consumed_at,
  });
const answer = (status: number, body: object) => ({ status, body });
const registered = (key: string) => ({ registration: { registration_id: `id of ${key}` } });

beforeEach(() => {
  ledger = new RegistrarLedger();
  approve("one", 1);
  approve("two", 1);
  approve("other", 2);
});

test("a key, an effect and a nonce are used once", () => {
  consume("k", 1, "one");
  expect(() => consume("k", 1, "two")).toThrow(/registered_wrongly: .* duplicate/);
  expect(() => consume("l", 1, "two")).toThrow(/effect_exists/);
  expect(() => consume("l", 1, "one")).toThrow(/REPLAY_NONCE_CONSUMED/);
  consume("l", 2, "other");
});

test("an approval is used for its own effect, in its time, and not when it is revoked", () => {
  expect(() => consume("k", 2, "one")).toThrow(/NONCE_UNBOUND/);
  expect(() => consume("k", 1, "one", 1_000)).toThrow(/NONCE_UNBOUND/);
  approve("one", 1, { revoked_at: 5 });
  expect(() => consume("k", 1, "one")).toThrow(/NONCE_UNBOUND/);
});

test("a verdict stands, and only what did not pass is compensated, once", () => {
  const compensate = (approval_id: string) =>
    ledger.noteCompensated({ logical_request_key: "k", approval_id, compensated_at: 20 });
  consume("k", 1, "one");
  approve("undo", 1, { purpose: "compensate", logical_request_key: "k" });
  expect(() => compensate("undo")).toThrow(/NOT_COMPENSABLE/);
  ledger.noteVerified("k", "verify_failed");
  expect(() => ledger.noteVerified("k", "registered_closed")).toThrow(/was verify_failed/);
  compensate("undo");
  expect(() => compensate("undo")).toThrow(/duplicate/);
});

test("answers tell of the one registration, and of a key that is taken as taken", () => {
  const early = ledger.asking("registrar.register", "k");
  const twin = ledger.asking("registrar.register", "k");
  consume("k", 1, "one");
  early(answer(201, registered("k")));
  expect(() => twin(answer(201, registered("k")))).toThrow(/registered as new/);
  const late = () => ledger.asking("registrar.register", "k");
  late()(answer(200, registered("k")));
  expect(() => late()(answer(200, registered("l")))).toThrow(/registered_wrongly/);
  expect(() => late()(answer(403, { error: "nonce_unbound" }))).toThrow(/was taken/);
  expect(() => ledger.asking("registrar.resolve", "k")(answer(200, { state: "unknown" }))).toThrow(/is unknown/);
});

test("every refusal is in the audit", () => {
  ledger.asking("registrar.register", "k")(answer(403, { error: "nonce_unbound" }));
  ledger.asking("registrar.approve", undefined)(answer(503, {}));
  ledger.checkAudit(1);
  expect(() => ledger.checkAudit(0)).toThrow(/refusal_unaudited/);
});

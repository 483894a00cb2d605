// Decides what is wrong, as findings: from what a daemon knows of itself and what its broker says of the mesh, each
// with a stable code, its meaning, and the command that solves it. Pure: `daemon status` and `doctor` show the same
// findings.
import type { BrokerStatusBody, HealthBody } from "../daemon/report-bodies.ts";

export const findingCodes = [
  "broker_away",
  "not_our_broker",
  "broker_connecting",
  "membership_ended",
  "broker_silent",
  "store_unavailable",
  "limiter_unavailable",
  "limiter_uncounted",
  "rate_limited",
  "rows_waiting",
  "dead_rows",
  "outbox_full",
  "parked_jobs",
  "once_uncertain",
  "verification_failed",
  "rows_do_not_fit",
  "clock_off",
  "disk_low",
  "certificate_ends",
  "fault_points",
] as const;

export type FindingCode = (typeof findingCodes)[number];

export type Finding = {
  readonly code: FindingCode;
  /** A single `fail` makes the whole report fail. */
  readonly status: "warn" | "fail";
  readonly means: string;
  /** A command, or what to do where no command helps. */
  readonly fix: string;
};

/** `ok`: no finding is a `fail`. */
export type FindingsBody = { readonly ok: boolean; readonly findings: readonly Finding[] };

type Named = { readonly keys: number; readonly first: readonly string[] };

/** The answer of `mesh.health`, as far as this version reads it. */
export type MeshHealth = {
  readonly time: number;
  readonly store: string;
  readonly limiter: string;
  readonly parked: { readonly messages: number; readonly queues: readonly string[] };
  readonly uncertain: Named;
  readonly verify_failed: Named;
  readonly nightly_check: {
    readonly ended_at: number;
    readonly found: number;
    readonly rules: readonly string[];
  } | null;
};

/** What the broker said of the mesh. `refused` is the code of its refusal; undefined where no answer came in time. */
export type BrokerSaid =
  | { readonly health: MeshHealth; readonly clockAheadMs: number }
  | { readonly refused: string | undefined };

export type DaemonFacts = {
  readonly mesh: string;
  readonly platform: NodeJS.Platform;
  readonly nowMs: number;
  readonly health: HealthBody;
  /** When the oldest row that is still to be sent was stored. */
  readonly oldestOpenAtMs: number | undefined;
  readonly freeBytes: number | undefined;
};

const waitingTooLongMs = 600_000;
const clockWarnMs = 2_000;
const clockFailMs = 300_000;
const mebibyte = 1_048_576;
const scarceBytes = 512 * mebibyte;
const fullBytes = 64 * mebibyte;
const certificateFailMs = 14 * 86_400_000;

export function findingsBody(findings: readonly Finding[]): FindingsBody {
  return { ok: findings.every(({ status }) => status !== "fail"), findings };
}

export function judgeDaemon(facts: DaemonFacts): Finding[] {
  return [
    ...judgeMembership(facts),
    ...judgeRows(facts),
    ...judgeOutboxRoom(facts),
    ...judgeDisk(facts),
    ...judgeFaults(facts),
  ];
}

/** The daemon of a former member is offline for that reason, and for no other. */
function judgeMembership(facts: DaemonFacts): Finding[] {
  const { mesh, health } = facts;
  const { broker, drain } = health;
  const { membership } = health as { membership?: { readonly state?: unknown } };
  const isRefused = broker.reason === "unauthorized" || broker.reason === "member_revoked" || drain.state === "halted";
  const isEnded = membership?.state === "ended";
  if (!isEnded && !isRefused) return judgeLink(mesh, broker);
  const means = isEnded
    ? "This member was removed from the mesh: new sends are refused, and what is queued waits until it is too old."
    : "The broker refuses this member: its membership ended, or the mesh is not there any more. New sends are refused.";
  const fix = `ask an owner for an invite, then: claudemesh daemon remint --mesh ${mesh} --invite <invite>`;
  return [{ code: "membership_ended", status: "fail", means, fix }];
}

function judgeLink(mesh: string, broker: BrokerStatusBody): Finding[] {
  if (broker.state === "online") return [];
  const reconnect = `claudemesh daemon reconnect --mesh ${mesh}`;
  if (broker.state === "connecting") {
    const means = "The daemon is connecting to the broker; sends are kept meanwhile.";
    return [{ code: "broker_connecting", status: "warn", means, fix: reconnect }];
  }
  const why = [broker.reason, broker.detail].filter((part) => part !== undefined).join(": ");
  if (broker.reason === "not_our_broker") {
    const means = `What answers at the broker's address has not proven to be our broker (${why}); nothing it says counts.`;
    const fix = `see what runs there; only if an owner says that its key was changed on purpose: claudemesh mesh trust-broker --mesh ${mesh}`;
    return [{ code: "not_our_broker", status: "fail", means, fix }];
  }
  const means = `The daemon is not connected (${why}); sends are kept until it is.`;
  const fix = `see that the broker runs, then: ${reconnect}`;
  return [{ code: "broker_away", status: "fail", means, fix }];
}

function judgeRows({ mesh, nowMs, health, oldestOpenAtMs }: DaemonFacts): Finding[] {
  const { drain, outbox } = health;
  const findings: Finding[] = [];
  const { rate_limited_since: since } = drain as { rate_limited_since?: unknown };
  if (drain.state === "resting" && typeof since === "number") {
    const means = `The mesh's budget is spent since ${when(since)}; what is queued waits until ${when(drain.until)}.`;
    const fix = "send less, or have the broker's --rate-limit raised";
    findings.push({ code: "rate_limited", status: "fail", means, fix });
  }
  if (oldestOpenAtMs !== undefined && nowMs - oldestOpenAtMs > waitingTooLongMs) {
    const minutes = Math.floor((nowMs - oldestOpenAtMs) / 60_000);
    const waiting = counted(outbox.pending + outbox.inflight, "row waits", "rows wait");
    const means = `${waiting} to be sent, the oldest for ${minutes} minutes.`;
    const fix = `claudemesh daemon outbox list --pending --mesh ${mesh}`;
    findings.push({ code: "rows_waiting", status: "fail", means, fix });
  }
  if (outbox.dead > 0) {
    const means = `${counted(outbox.dead, "row is", "rows are")} dead: not delivered, and not tried any more.`;
    const fix = `claudemesh daemon outbox list --failed --mesh ${mesh}; then requeue or dismiss each`;
    findings.push({ code: "dead_rows", status: "fail", means, fix });
  }
  return findings;
}

function judgeOutboxRoom({ mesh, health }: DaemonFacts): Finding[] {
  const { used_bytes: used, max_bytes: max } = health.outbox;
  if (used < max * 0.8) return [];
  const isFull = used >= max * 0.95;
  const means = `${Math.round((used / max) * 100)} % of [outbox] max_bytes are used${isFull ? "; done rows make room for new sends, which are refused once none is left" : ""}.`;
  const fix = `claudemesh daemon outbox prune --older-than-days 7 --mesh ${mesh}, or raise [outbox] max_bytes`;
  return [{ code: "outbox_full", status: isFull ? "fail" : "warn", means, fix }];
}

function judgeDisk({ freeBytes }: DaemonFacts): Finding[] {
  if (freeBytes === undefined || freeBytes >= scarceBytes) return [];
  const means = `${Math.floor(freeBytes / mebibyte)} MiB are free on the disk of the home.`;
  return [{ code: "disk_low", status: freeBytes < fullBytes ? "fail" : "warn", means, fix: "make room on that disk" }];
}

function judgeFaults({ mesh, health }: DaemonFacts): Finding[] {
  if (health.failpoints === undefined) return [];
  const means = `The daemon fails on purpose: ${health.failpoints}.`;
  const fix = `unset CLAUDEMESH_FAILPOINTS; claudemesh daemon restart --mesh ${mesh}`;
  return [{ code: "fault_points", status: "fail", means, fix }];
}

export function judgeBroker(mesh: string, platform: NodeJS.Platform, said: BrokerSaid): Finding[] {
  if ("refused" in said) {
    if (said.refused === undefined) return [brokerSilent];
    return said.refused === "storage_unavailable" ? [storeAway] : [];
  }
  const { health, clockAheadMs } = said;
  const { parked, uncertain, verify_failed: failed } = health;
  return [
    ...judgeParts(health),
    ...some(
      parked.messages,
      "parked_jobs",
      `${counted(parked.messages, "job was", "jobs were")} delivered too often and parked in ${list(parked.queues)}.`,
      `claudemesh queue parked ${parked.queues[0] ?? "<queue>"} --mesh ${mesh}; then revive them`,
    ),
    ...some(
      uncertain.keys,
      "once_uncertain",
      `${counted(uncertain.keys, "key of once is", "keys of once are")} uncertain: ${list(uncertain.first)}. What ran may have had its effect.`,
      `claudemesh once ${uncertain.first[0] ?? "<key>"} --show --mesh ${mesh}; then --resolve done or not-done`,
    ),
    ...some(
      failed.keys,
      "verification_failed",
      `${counted(failed.keys, "registration", "registrations")} failed verification: ${list(failed.first)}.`,
      `claudemesh registrar status ${failed.first[0] ?? "<key>"} --mesh ${mesh}; then compensate it`,
    ),
    ...judgeCheck(health),
    ...judgeClock(clockAheadMs, platform),
  ];
}

/** This is the only sign of a store that does not answer any more: the connection itself stays up. */
const brokerSilent: Finding = {
  code: "broker_silent",
  status: "fail",
  means: "The broker is connected and did not answer when it was asked how it is; it, or its store, may be stuck.",
  fix: "at the broker: curl <broker>/readyz, and its log; then see to the store, or start the broker again",
};

const storeAway: Finding = {
  code: "store_unavailable",
  status: "fail",
  means: "The broker's store takes no writes; nothing is accepted until it does.",
  fix: "at the broker: curl <broker>/readyz, and its log; then see to the disk or the PostgreSQL",
};

function judgeParts({ store, limiter }: MeshHealth): Finding[] {
  const findings: Finding[] = store === "ok" ? [] : [storeAway];
  if (limiter === "unavailable") {
    const means = "The broker's limiter takes no writes; new sends wait until it does.";
    findings.push({ code: "limiter_unavailable", status: "fail", means, fix: "at the broker: see to its Redis" });
  }
  if (limiter === "uncounted") {
    const means = "The broker's limiter is away, and new sends pass uncounted (--limiter-open).";
    findings.push({ code: "limiter_uncounted", status: "warn", means, fix: "at the broker: see to its Redis" });
  }
  return findings;
}

function judgeCheck({ nightly_check: check }: MeshHealth): Finding[] {
  if (check === null || check.found === 0) return [];
  const means = `The broker's check of ${when(check.ended_at)} found ${counted(check.found, "row that does", "rows that do")} not fit (${list(check.rules)}).`;
  const fix =
    "at the broker: claudemesh broker backup, then claudemesh broker check; docs/operations.md says what to do";
  return [{ code: "rows_do_not_fit", status: "fail", means, fix }];
}

export function judgeClock(clockAheadMs: number, platform: NodeJS.Platform): Finding[] {
  const offMs = Math.abs(clockAheadMs);
  if (offMs <= clockWarnMs) return [];
  const means = `This clock is ${Math.round(offMs / 1_000)} s ${clockAheadMs > 0 ? "ahead of" : "behind"} the broker's; one of them is wrong.`;
  const fix = platform === "darwin" ? "sudo sntp -sS time.apple.com" : "sudo timedatectl set-ntp true";
  return [{ code: "clock_off", status: offMs > clockFailMs ? "fail" : "warn", means, fix }];
}

/** `endsAtMs` undefined: the broker presents no certificate. */
export function judgeCertificate(endsAtMs: number | undefined, nowMs: number): Finding[] {
  if (endsAtMs === undefined || endsAtMs - nowMs >= certificateFailMs) return [];
  const verb = endsAtMs > nowMs ? "ends" : "ended";
  const means = `The broker's certificate ${verb} on ${when(endsAtMs)}; clients refuse it from then on.`;
  const fix = "at the broker: renew the files of --tls-cert and --tls-key, then: kill -HUP <its process>";
  return [{ code: "certificate_ends", status: "fail", means, fix }];
}

function some(count: number, code: FindingCode, means: string, fix: string): Finding[] {
  return count === 0 ? [] : [{ code, status: "fail", means, fix }];
}

function counted(count: number, one: string, many: string): string {
  return `${count} ${count === 1 ? one : many}`;
}

function list(names: readonly string[]): string {
  return names.length > 3 ? `${names.slice(0, 3).join(", ")} and others` : names.join(", ");
}

function when(ms: number): string {
  return `${new Date(ms).toISOString().replace("T", " ").slice(0, 19)} UTC`;
}

// The doctor's judgement of what runs and what is connected: lock and socket, versions, loopback port, broker, clock.
// Pure; the facts come from gather.ts.
import { formatTime } from "../output/table.ts";
import type { HomeFindings, Judgement, MeshFindings } from "./findings.ts";

const clockWarnMs = 30_000;
/** Beyond this, conclusions from the age of a row could be wrong. */
const clockFailMs = 3_600_000;

export function judgeConnections(home: Pick<HomeFindings, "commandVersion">, found: MeshFindings): Judgement[] {
  return [
    judgeDaemon(found),
    ...judgeVersions(home.commandVersion, found),
    ...judgePort(found),
    ...judgeBroker(found),
    ...judgeLink(found),
    judgeClock(found),
  ];
}

/** The kernel's lock says whether a daemon runs; the socket whether it answers. */
function judgeDaemon({ daemon, folder, mesh }: MeshFindings): Judgement {
  const check = "daemon";
  const restart = `claudemesh daemon restart --mesh ${mesh}`;
  if (daemon.type === "answers") {
    const faults = (daemon.health as { failpoints?: unknown } | undefined)?.failpoints;
    if (faults !== undefined) {
      const means = `It fails on purpose: ${String(faults)}.`;
      return { check, status: "fail", means, fix: `unset CLAUDEMESH_FAILPOINTS; ${restart}` };
    }
    return { check, status: "ok", means: `It answers${daemon.pid === undefined ? "" : ` (process ${daemon.pid})`}.` };
  }
  if (daemon.type === "silent") {
    const means = `Something took the question and did not answer: ${daemon.why}.`;
    return { check, status: "fail", means, fix: `claudemesh daemon logs --mesh ${mesh}; then ${restart}` };
  }
  if (folder.lock === "held") {
    const means = "A process holds the lock and has no socket: it is starting, stopping, or stuck.";
    return { check, status: "fail", means, fix: `claudemesh daemon logs --mesh ${mesh}` };
  }
  return { check, status: "fail", means: "No daemon is running.", fix: `claudemesh daemon up --mesh ${mesh}` };
}

function judgeVersions(commandVersion: string, { daemon, mesh }: MeshFindings): Judgement[] {
  if (daemon.type !== "answers") return [];
  const check = "versions";
  if (daemon.version === commandVersion) return [{ check, status: "ok", means: `Both are ${commandVersion}.` }];
  const means = `This command is ${commandVersion}, and the daemon is ${daemon.version}.`;
  return [{ check, status: "warn", means, fix: `claudemesh daemon restart --mesh ${mesh}` }];
}

function judgePort({ daemon, port, mesh }: MeshFindings): Judgement[] {
  if (daemon.type !== "answers") return [];
  const check = "port";
  switch (port.type) {
    case "none":
      return [{ check, status: "ok", means: "The local API is on its socket alone." }];
    case "answers":
      return [{ check, status: "ok", means: `127.0.0.1:${port.port} takes the local token.` }];
    case "fails": {
      const means = `127.0.0.1:${port.port} does not serve this daemon's API (${port.why}).`;
      return [{ check, status: "fail", means, fix: `claudemesh daemon restart --mesh ${mesh}` }];
    }
  }
}

function judgeBroker({ broker, brokerUrl, mesh }: MeshFindings): Judgement[] {
  const check = "broker";
  switch (broker.type) {
    case "not asked":
      return [];
    case "negotiated":
      return [{ check, status: "ok", means: `${brokerUrl ?? "It"} knows this member, and both agree on features.` }];
    case "refused": {
      const fix = `ask an owner for an invite, then: claudemesh daemon remint --mesh ${mesh} --invite <invite>`;
      return [{ check, status: "fail", means: `It refuses this member: ${broker.detail}.`, fix }];
    }
    case "incompatible": {
      const fix = "npm install --global claudemesh, here or where the broker runs";
      return [{ check, status: "fail", means: `It cannot work with this version: ${broker.detail}.`, fix }];
    }
    case "stranger": {
      const means = `What answers at ${brokerUrl ?? "its address"} is not our broker: ${broker.detail}. Nothing is sent to it.`;
      const fix = `look what runs there; if an owner says that the key was changed: claudemesh mesh trust-broker --mesh ${mesh}`;
      return [{ check, status: "fail", means, fix }];
    }
    case "away": {
      const fix = `check that it runs: curl ${brokerUrl?.replace(/^ws/, "http") ?? ""}/healthz`;
      return [{ check, status: "fail", means: `${brokerUrl ?? "It"} cannot be reached: ${broker.detail}.`, fix }];
    }
  }
}

/** What the daemon itself says of its connection. */
function judgeLink({ daemon, mesh }: MeshFindings): Judgement[] {
  if (daemon.type !== "answers") return [];
  const check = "link";
  const { broker, drain, membership } = (daemon.health ?? {}) as {
    broker?: { state?: unknown; reason?: unknown; detail?: unknown };
    drain?: { state?: unknown; detail?: unknown; until?: unknown; rate_limited_since?: unknown };
    membership?: { state?: unknown; since?: unknown };
  };
  if (membership?.state === "ended") {
    const means = `This member was removed from the mesh (told ${timeOf(membership.since)}); new sends are refused, and what is queued waits until it is too old.`;
    const invite = `ask an owner for an invite, then: claudemesh daemon remint --mesh ${mesh} --invite <invite>`;
    return [{ check, status: "fail", means, fix: invite }];
  }
  const fix = `claudemesh daemon logs --mesh ${mesh}`;
  if (broker?.state === "online" && typeof drain?.rate_limited_since === "number") {
    const means = `The mesh's budget is spent since ${timeOf(drain.rate_limited_since)}; what is queued waits until ${timeOf(drain.until)}.`;
    return [{ check, status: "warn", means, fix: "send less, or start the broker with a larger --rate-limit" }];
  }
  if (drain?.state === "halted") {
    const means = `The broker refuses what is sent: ${String(drain.detail)}. Rows wait.`;
    return [{ check, status: "fail", means, fix }];
  }
  if (broker?.state === "online") return [{ check, status: "ok", means: "The daemon is connected to the broker." }];
  if (broker?.state === "connecting") {
    return [{ check, status: "warn", means: "The daemon is connecting to the broker; sends are kept meanwhile.", fix }];
  }
  const why = [broker?.reason, broker?.detail].filter((part) => typeof part === "string").join(": ");
  const means = `The daemon is not connected (${why || "it does not say why"}); sends are kept until it is.`;
  return [{ check, status: "fail", means, fix }];
}

function judgeClock({ clockAheadMs, platform }: MeshFindings): Judgement {
  const check = "clock";
  if (clockAheadMs === undefined) {
    return { check, status: "ok", means: "Not compared: the broker does not say its time." };
  }
  const seconds = Math.round(Math.abs(clockAheadMs) / 1_000);
  if (Math.abs(clockAheadMs) < clockWarnMs) return { check, status: "ok", means: "It agrees with the broker's." };
  const means = `It is ${seconds} s ${clockAheadMs > 0 ? "ahead of" : "behind"} the broker's; one of them is wrong.`;
  const fix = platform === "darwin" ? "sudo sntp -sS time.apple.com" : "sudo timedatectl set-ntp true";
  return { check, status: Math.abs(clockAheadMs) >= clockFailMs ? "fail" : "warn", means, fix };
}

function timeOf(ms: unknown): string {
  return typeof ms === "number" ? `${formatTime(ms)} UTC` : "at an unknown time";
}

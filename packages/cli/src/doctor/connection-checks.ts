// The doctor's judgement of what runs and what is connected: lock and socket, versions, loopback port, broker, clock.
// Pure; the facts come from gather.ts.
import { judgeClock } from "@claudemesh/client/internal/findings";
import { explainAbsence } from "@claudemesh/client/internal/last-run";
import { isInClear } from "@claudemesh/protocol/wire/in-clear";
import type { HomeFindings, Judgement, LostBroker, MeshFindings } from "./findings.ts";

export function judgeConnections(home: Pick<HomeFindings, "commandVersion">, facts: MeshFindings): Judgement[] {
  return [
    judgeDaemon(facts),
    ...judgeVersions(home.commandVersion, facts),
    ...judgePort(facts),
    ...judgeBroker(facts),
    ...judgeWay(facts),
    ...judgeFindings(facts),
    ...judgeClockByHeader(facts),
  ];
}

/** The kernel's lock says whether a daemon runs; the socket whether it answers. */
function judgeDaemon({ daemon, folder, mesh, lastRun }: MeshFindings): Judgement {
  const check = "daemon";
  const restart = `claudemesh daemon restart --mesh ${mesh}`;
  if (daemon.type === "answers") {
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
  const { means, next } = explainAbsence(mesh, lastRun);
  return { check, status: "fail", means, fix: next };
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
      return [
        { check, status: "ok", means: `${broker.url} knows this member, and both agree on features.` },
        ...judgeLost(broker.lost),
      ];
    case "refused": {
      const fix = `ask an owner for an invite, then: claudemesh daemon remint --mesh ${mesh} --invite <invite>`;
      return [{ check, status: "fail", means: `It refuses this member: ${broker.detail.replace(/\.$/, "")}.`, fix }];
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

/** What the others carry meanwhile is no failure of this host, and worth knowing before the last one goes. */
function judgeLost(lost: readonly LostBroker[]): Judgement[] {
  return lost.map(({ url, why }) => ({
    check: "other brokers",
    status: "warn",
    means: `${url} cannot be used: ${why.replace(/\.$/, "")}. The others of its store are used meanwhile.`,
    fix: `check that it runs: curl ${url.replace(/^ws/, "http")}/healthz`,
  }));
}

/** Keys say who is there, and hide nothing from who is on the way. */
function judgeWay({ brokerUrl }: MeshFindings): Judgement[] {
  if (brokerUrl === undefined || !isInClear(brokerUrl)) return [];
  const means = `${brokerUrl} is another host without TLS: whoever is on the way reads and changes what is said.`;
  const fix = "let the broker serve TLS (--tls-cert), and set its wss:// address as [mesh] broker";
  return [{ check: "way", status: "warn", means, fix }];
}

/** The doctor has rows of its own for these, also while no daemon runs. */
const checkedHere: ReadonlySet<string> = new Set(["disk_low", "outbox_full"]);

/** What the daemon, or the broker, says is wrong. Where nothing is, one row says so. */
function judgeFindings({ findings, daemon, broker }: MeshFindings): Judgement[] {
  if (daemon.type !== "answers" && broker.type !== "negotiated") return [];
  const news = findings.filter(({ code }) => !checkedHere.has(code));
  if (news.length === 0) return [{ check: "findings", status: "ok", means: "Daemon and broker report nothing." }];
  return news.map(({ code, status, means, fix }) => ({
    check: code.replaceAll("_", " "),
    code,
    status,
    means,
    fix,
  }));
}

/** Only where the broker could not be asked for its time: the clock is among the findings otherwise. */
function judgeClockByHeader({ clockAheadMs, platform, daemon, broker }: MeshFindings): Judgement[] {
  const isAsked = daemon.type === "answers" || broker.type === "negotiated";
  if (isAsked || clockAheadMs === undefined) return [];
  return judgeClock(clockAheadMs, platform).map(({ code, status, means, fix }) => ({
    check: "clock",
    code,
    status,
    means,
    fix,
  }));
}

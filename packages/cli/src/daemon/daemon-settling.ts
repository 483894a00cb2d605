// Waiting until a daemon that was just started, or asked to connect, has agreed with a broker, has said why it waits, or is
// gone.
import { setTimeout as sleep } from "node:timers/promises";
import { type BrokerStatusBody, DaemonUnreachable, type HealthBody } from "@claudemesh/client/daemon";
import type { MeshPaths } from "@claudemesh/client/home";
import { explainAbsence, readLastRun } from "@claudemesh/client/internal/last-run";
import { expectBody, Refused } from "../exit-codes.ts";
import { callDaemon } from "./daemon-access.ts";

const pollMs = 50;
/** Longer than a broker that says nothing is given by the daemon itself. */
const giveUpMs = 12_000;
/** What ends a daemon that got through to its broker comes with the broker's first words. */
const graceMs = 250;
const callMs = 5_000;
/** So long it takes at most until the daemon has asked the next of several brokers. */
const nextBrokerMs = 2_000;

export type Settled = { readonly broker: BrokerStatusBody; readonly isFormerMember: boolean };

/** Throws where the daemon has ended, with the reason that it left. `hasEnded`: its process is known to be gone. */
export async function waitUntilSettled(paths: MeshPaths, hasEnded: () => boolean): Promise<Settled> {
  const beganMs = performance.now();
  let broker: BrokerStatusBody = { state: "connecting" };
  /** The last reason why there is no connection, where others are still to be asked. */
  let failed: BrokerStatusBody | undefined;
  let isLastLook = false;
  let isFormerMember = false;
  for (;;) {
    const health = await look(paths);
    if (hasEnded() || health === "gone") throw endedEarly(paths);
    if (health !== undefined) {
      broker = health.broker;
      isFormerMember = health.membership?.state === "ended";
    }
    if (isLastLook) {
      return { broker: broker.state === "connecting" ? (failed ?? broker) : broker, isFormerMember };
    }
    if (broker.state === "offline") failed = broker;
    isLastLook = isSettled(broker, performance.now() - beganMs);
    await sleep(isLastLook && broker.state === "online" ? graceMs : pollMs);
  }
}

/** One of several brokers that does not answer says nothing of the others. */
export function isSettled(broker: BrokerStatusBody, waitedMs: number): boolean {
  if (waitedMs >= giveUpMs) return true;
  if (broker.state === "offline") return waitedMs >= (broker.others?.length ?? 0) * nextBrokerMs;
  return broker.state !== "connecting";
}

/** A daemon of before an upgrade may not tell of its membership. */
type Health = Pick<HealthBody, "broker"> & { readonly membership?: HealthBody["membership"] };

/** Undefined where it is there and did not answer in time, or could not just now, as when its disk fails a read. */
async function look(paths: MeshPaths): Promise<Health | "gone" | undefined> {
  try {
    return await callDaemon(paths, async (daemon) => expectBody(await daemon.health()), callMs);
  } catch (error) {
    if (error instanceof Refused && error.body.retryable) return undefined;
    if (!(error instanceof DaemonUnreachable)) throw error;
    return error.timedOut ? undefined : "gone";
  }
}

function endedEarly(paths: MeshPaths): Refused {
  const run = readLastRun(paths.lastRun);
  const { means, next } = explainAbsence(paths.mesh, run);
  const message = `The daemon started and ended again. ${means} To go on: ${next}.`;
  return new Refused(503, { error: "daemon_ended", message, retryable: false, reason: run?.reason ?? null });
}

/** Waiting would not help: an owner, an operator or an upgrade has to. */
const hopeless: ReadonlySet<string> = new Set(["unauthorized", "member_revoked", "protocol_error", "not_our_broker"]);

export function isHopeless({ broker: { state, reason }, isFormerMember }: Settled): boolean {
  if (isFormerMember) return true;
  return state !== "online" && reason !== undefined && hopeless.has(reason);
}

/** Where the reason itself does not say what to do. */
const advice: Readonly<Record<string, string>> = {
  not_our_broker:
    "Look what runs at its address; if an owner says that the key was changed on purpose: claudemesh mesh trust-broker.",
  unauthorized:
    "Ask an owner whether this member is in the mesh: claudemesh mesh members. `claudemesh doctor` says more.",
};

const formerMember =
  "This member was removed from the mesh: new sends are refused. Ask an owner for an invite, then: claudemesh daemon remint --invite <invite>";

export function describeBroker({ broker: { state, reason, detail }, isFormerMember }: Settled): string {
  if (isFormerMember) return `Broker  not connected (${reason ?? state})\n${formerMember}`;
  if (state === "online") return "Broker  connected";
  if (state === "connecting") return "Broker  not reached yet; sends are kept until it is";
  const why = [reason, detail].filter((part) => part !== undefined).join(": ");
  const next = reason === undefined ? undefined : advice[reason];
  return `Broker  not connected (${why}); sends are kept until it is${next === undefined ? "" : `\n${next}`}`;
}

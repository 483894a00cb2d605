// What is wrong with this daemon and its mesh: what it knows itself, and what the broker says when asked. What each fact
// means is judged in the client package, for the doctor too.
import { statfsSync } from "node:fs";
import process from "node:process";
import type { FindingsBody } from "@claudemesh/client/daemon";
import {
  type BrokerSaid,
  findingsBody,
  judgeBroker,
  judgeCertificate,
  judgeDaemon,
} from "@claudemesh/client/internal/findings";
import { askMeshHealth, readCertificateEnd } from "@claudemesh/client/internal/findings-questions";
import type { BrokerLink, Clock, OutboxStore } from "../ports.ts";
import { type HealthPorts, reportHealth } from "./report-health.ts";

export type FindingsPorts = {
  readonly health: HealthPorts;
  readonly outbox: Pick<OutboxStore, "oldestOpenEnqueuedAt">;
  readonly link: Pick<BrokerLink, "request">;
  readonly clock: Pick<Clock, "nowMs">;
  /** The folder whose disk holds the databases. */
  readonly folder: string;
  /** Where the broker of the moment is. */
  readonly brokerUrl: () => string;
};

const askMs = 3_000;

export async function reportFindings(ports: FindingsPorts): Promise<FindingsBody> {
  const { health, outbox, link, clock, folder, brokerUrl } = ports;
  const asked = askBroker(link);
  const mesh = health.mesh.name;
  const own = judgeDaemon({
    mesh,
    platform: process.platform,
    nowMs: clock.nowMs(),
    health: reportHealth(health),
    oldestOpenAtMs: outbox.oldestOpenEnqueuedAt(),
    freeBytes: readFreeBytes(folder),
  });
  const certificate = judgeCertificate(await readCertificateEnd(brokerUrl()), Date.now());
  const said = await asked;
  return findingsBody([
    ...own,
    ...(said === undefined ? [] : judgeBroker(mesh, process.platform, said)),
    ...certificate,
  ]);
}

/** Undefined where there is no connection to ask over. The daemon's own findings say so. */
async function askBroker(link: FindingsPorts["link"]): Promise<BrokerSaid | undefined> {
  let isSent = true;
  const said = await askMeshHealth(async () => {
    const outcome = await link.request("mesh.health", {}, { timeoutMs: askMs });
    isSent = outcome.type !== "not_sent";
    return outcome.type === "answered" ? outcome : undefined;
  });
  return isSent ? said : undefined;
}

function readFreeBytes(folder: string): number | undefined {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize;
  } catch (error) {
    if (error instanceof Error && "code" in error) return undefined;
    throw error;
  }
}

// Asks a broker about a mesh's health, and reads its certificate. Every question has a time limit.
import { connect } from "node:tls";
import { isErrorBody } from "@claudemesh/protocol/errors";
import { brokerHttpUrl } from "../broker/broker-url.ts";
import type { BrokerSaid, MeshHealth } from "./judge-findings.ts";

const certificateMs = 3_000;

/** `ask` returns the answer of `mesh.health`, whatever it is; undefined where there was none. */
export async function askMeshHealth(
  ask: () => Promise<{ readonly status: number; readonly body: unknown } | undefined>,
  wallMs: () => number = Date.now,
): Promise<BrokerSaid> {
  const askedAtMs = wallMs();
  const answer = await ask();
  if (answer === undefined) return { refused: undefined };
  const health = answer.body as MeshHealth | undefined;
  if (answer.status !== 200 || typeof health?.time !== "number") {
    return { refused: isErrorBody(answer.body) ? answer.body.error : undefined };
  }
  return { health, clockAheadMs: Math.round((askedAtMs + wallMs()) / 2 - health.time) };
}

/**
 * When the certificate that a broker presents ends; undefined where it presents none, or cannot be reached. The
 * certificate is only read, not trusted.
 */
export function readCertificateEnd(broker: string): Promise<number | undefined> {
  const { protocol, hostname, port } = new URL(brokerHttpUrl(broker, ""));
  if (protocol !== "https:") return Promise.resolve(undefined);
  const host = hostname.replace(/^\[|\]$/g, "");
  const servername = /^[0-9.]+$|:/.test(host) ? {} : { servername: host };
  return new Promise((resolve) => {
    const socket = connect({ host, port: Number(port || 443), rejectUnauthorized: false, ...servername }, () => {
      const endsAtMs = Date.parse(socket.getPeerCertificate().valid_to ?? "");
      socket.destroy();
      resolve(Number.isNaN(endsAtMs) ? undefined : endsAtMs);
    });
    socket.setTimeout(certificateMs, () => socket.destroy());
    socket.on("error", () => resolve(undefined));
    socket.on("close", () => resolve(undefined));
  });
}

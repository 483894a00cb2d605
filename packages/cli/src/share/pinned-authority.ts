// Trust by an invite's fingerprint: asks the broker for its certificates, in a TLS handshake after which nothing is sent,
// and takes the one that the invite names. Everything afterwards is an ordinary, verified connection that trusts it.
// Why: docs/decisions/0155.
import { X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { connect, type DetailedPeerCertificate, type TLSSocket } from "node:tls";
import { brokerHttpUrl } from "@claudemesh/client/internal/broker-url";
import { MeshError } from "@claudemesh/protocol/errors";
import { fingerprintOf } from "./own-certificates.ts";

const timeoutMs = 10_000;
/** Servers show two or three; a server that shows endless ones is not worth reading. */
const chainMax = 8;

/**
 * The certificate as PEM; undefined where the broker shows another one that this machine trusts anyway, as behind a proxy
 * that ends TLS with a public certificate. Rejects where it shows neither.
 */
export async function fetchPinnedAuthority(broker: string, fingerprint: string): Promise<string | undefined> {
  const url = new URL(brokerHttpUrl(broker, ""));
  if (url.protocol !== "https:") {
    const message = `The invite names a certificate, but ${broker} is not https:// or wss://; ask for a new invite.`;
    throw new MeshError("invalid_invite", message);
  }
  const { certificates, isTrusted } = await greet(url, broker);
  const pinned = certificates.find((certificate) => fingerprintOf(certificate) === fingerprint);
  if (pinned !== undefined) return pinned.toString();
  if (isTrusted) return undefined;
  const seen = certificates.map(fingerprintOf).join(", ");
  const message = `${broker} is not the broker of this invite: it shows another certificate. Nothing was sent. Compare with the one who invited you, or ask for a new invite.`;
  throw new MeshError("broker_unreachable", message, { broker, expected: fingerprint, seen, sent: false });
}

type Greeting = { readonly certificates: readonly X509Certificate[]; readonly isTrusted: boolean };

function greet(url: URL, broker: string): Promise<Greeting> {
  const host = url.hostname.replace(/^\[|\]$/g, "");
  return new Promise((resolve, reject) => {
    // Nothing is trusted yet: this connection learns a certificate and carries nothing.
    const socket = connect({
      host,
      port: Number(url.port || 443),
      ...(isIP(host) === 0 ? { servername: host } : {}),
      rejectUnauthorized: false,
      timeout: timeoutMs,
    });
    const fail = (why: string, cause?: unknown) => {
      socket.destroy();
      const message = `No connection to the broker at ${broker}: ${why}.`;
      reject(new MeshError("broker_unreachable", message, { broker, sent: false }, cause));
    };
    socket.once("secureConnect", () => {
      const greeting = { certificates: chainOf(socket), isTrusted: socket.authorized };
      socket.destroy();
      resolve(greeting);
    });
    socket.once("timeout", () => fail(`no TLS handshake within ${timeoutMs / 1000} s`));
    socket.once("error", (error: NodeJS.ErrnoException) => fail(error.code ?? error.message, error));
  });
}

function chainOf(socket: TLSSocket): X509Certificate[] {
  const chain: X509Certificate[] = [];
  let next: DetailedPeerCertificate | undefined = socket.getPeerCertificate(true);
  while (next?.raw !== undefined && chain.length < chainMax) {
    chain.push(new X509Certificate(next.raw));
    // An authority at the end of a chain names itself.
    next = next.issuerCertificate === next ? undefined : next.issuerCertificate;
  }
  return chain;
}

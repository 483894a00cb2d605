// From the one address of a broker that people write down to the addresses that programs use: WebSocket and HTTP.
// Why: docs/decisions/0004.
import { MeshError } from "@claudemesh/protocol/errors";
import { connectPath } from "@claudemesh/protocol/wire/frames";

/** `broker` is a ws://, wss://, http:// or https:// address, as people write it. */
export function brokerSocketUrl(broker: string): string {
  const { secure, rest } = readBrokerUrl(broker);
  return `${secure ? "wss" : "ws"}://${rest}${connectPath}`;
}

export function brokerHttpUrl(broker: string, path: string): string {
  const { secure, rest } = readBrokerUrl(broker);
  return `${secure ? "https" : "http"}://${rest}${path}`;
}

function readBrokerUrl(broker: string): { secure: boolean; rest: string } {
  const url = URL.canParse(broker) ? new URL(broker) : undefined;
  const [, scheme] = /^(?:ws|http)(s?):$/.exec(url?.protocol ?? "") ?? [];
  const hasMore =
    url !== undefined && (url.search !== "" || url.hash !== "" || url.username !== "" || url.password !== "");
  if (url === undefined || scheme === undefined || url.host === "" || hasMore) {
    // An address may contain a password or a token, which must not be shown.
    const shown = /[@?#=]/.test(broker) ? "This" : `"${broker}"`;
    const message = `${shown} is not a broker's address; it looks like ws://127.0.0.1:7600 or https://mesh.example.org.`;
    throw new MeshError("invalid_request", message, { field: "broker" });
  }
  return { secure: scheme === "s", rest: url.host + url.pathname.replace(/\/+$/, "") };
}

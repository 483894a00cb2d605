// What the end of a connection means for the link: which close codes and hello answers stop it for good, and which only
// take it down until the next try. Pure; connection.ts reports the ends, and link.ts acts on them.
import { isErrorBody } from "@claudemesh/protocol/errors";
import { closeCodes, type NegotiationFailure } from "@claudemesh/protocol/features";
import type { LinkStatus, SeenKeys } from "./link-contract.ts";

export type EndedStatus = Extract<LinkStatus, { state: "offline" | "stopped" }>;

/** WebSocket's "service restart": the broker is stopping and will be back. */
const brokerStoppingCode = 1012;

/** No close frame arrived: the socket broke or was cut. */
const brokenSocketCode = 1006;
/** Codes from here on belong to the application. */
const firstOwnCode = 4000;

export type SocketClose = {
  readonly code: number;
  readonly reason: string;
  /** The socket had been opened. */
  readonly opened: boolean;
  /** The error of the socket itself, if there was one. */
  readonly error: string | undefined;
  /** Whether the other side has proven to be our broker: before that its close codes mean nothing. */
  readonly believed: boolean;
};

export function statusAfterClose(close: SocketClose): EndedStatus {
  const detail = describeClose(close);
  if (!close.believed) {
    if (close.code >= firstOwnCode) return notOurBroker(`${detail}, before it had proven its key`);
    return { state: "offline", reason: close.opened ? "lost" : "unreachable", detail };
  }
  switch (close.code) {
    case closeCodes.replaced_by_newer:
      return { state: "stopped", reason: "replaced_by_newer", detail };
    case closeCodes.older_connection_kept:
      return { state: "stopped", reason: "older_connection_kept", detail };
    case closeCodes.unauthorized:
      return { state: "offline", reason: "unauthorized", detail };
    case closeCodes.member_revoked:
      return { state: "offline", reason: "member_revoked", detail };
    case closeCodes.protocol_error:
    case 1002:
    case 1003:
    case 1007:
    case 1009:
      return { state: "offline", reason: "protocol_error", detail };
    case brokerStoppingCode:
      return { state: "offline", reason: "broker_stopping", detail };
    default:
      return { state: "offline", reason: close.opened ? "lost" : "unreachable", detail };
  }
}

function describeClose(close: SocketClose): string {
  if (close.error !== undefined) return close.error;
  if (close.code === brokenSocketCode) return "the connection broke";
  return `the broker closed the connection with code ${close.code}${close.reason === "" ? "" : `: ${close.reason}`}`;
}

export function notOurBroker(detail: string, keys?: SeenKeys): EndedStatus {
  return { state: "offline", reason: "not_our_broker", detail, ...(keys !== undefined && { keys }) };
}

/** The peer spoke first, as early brokers did. A home that has met a broker with a key does not accept one without. */
export function statusAfterChallenge(isPinned: boolean): EndedStatus {
  const what = "it speaks first (challenge), as brokers before 0.2 do, and proves no key";
  if (isPinned) return notOurBroker(`${what}; if it is ours after all, its upgrade was taken back`);
  return { state: "offline", reason: "broker_too_old", detail: `${what}; upgrade the broker` };
}

/** After a hello whose answer was not 200. */
export function statusAfterRefusedHello(status: number, body: unknown, believed: boolean): EndedStatus {
  const detail = isErrorBody(body) ? `${body.error}: ${body.message}` : `the hello was answered with status ${status}`;
  // A former member is told so once it has proven its key. This status survives restarts, so only our own broker's
  // answer counts.
  if (believed && isErrorBody(body) && body.membership === "ended")
    return { state: "offline", reason: "member_revoked", detail };
  if (status === 401 || status === 403) return { state: "offline", reason: "unauthorized", detail };
  if (isErrorBody(body) && body.error === "stopping") return { state: "offline", reason: "broker_stopping", detail };
  // A broker that is busy or broken may accept the same hello later; any other refusal means that the two disagree on
  // hellos.
  const mayPass = status >= 500 || status === 429 || status === 408;
  return { state: "offline", reason: mayPass ? "unreachable" : "protocol_error", detail };
}

/** A broker that is not trusted yet cannot stop the link: the next one at its address may be ours. */
export function statusAfterNegotiation(
  failure: NegotiationFailure,
  announced: unknown,
  believed: boolean,
): EndedStatus {
  if (!believed) {
    const detail = `${failure.code}: ${failure.feature}: ${failure.detail}`;
    return { state: "offline", reason: "protocol_error", detail };
  }
  return {
    state: "stopped",
    reason: failure.code,
    detail: `${failure.feature}: ${failure.detail}`,
    negotiation: { failure, announced },
  };
}

/**
 * How many tries in a row have failed, after one more connection has ended. A hello that held for a while resets the
 * count; one that was dropped at once does not, so that a broker which accepts and drops is not flooded with tries.
 */
export function failuresAfterEnd(failures: number, onlineForMs: number | undefined, steadyMs: number): number {
  return onlineForMs !== undefined && onlineForMs >= steadyMs ? 1 : failures + 1;
}

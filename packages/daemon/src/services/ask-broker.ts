// A question of a local program, passed on to the broker over the daemon's link. What the broker answers is the answer,
// refusals too. Where it does not answer, the error says whether it may have acted.
import { isErrorBody, MeshError } from "@claudemesh/protocol/errors";
import type { OperationName } from "@claudemesh/protocol/wire/operations";
import type { BrokerLink } from "../ports.ts";
import type { Membership } from "./membership.ts";

type BrokerAnswer = {
  readonly status: number;
  readonly body: Record<string, unknown>;
  readonly headers?: Readonly<Record<string, string>>;
};

export type AskBroker = (operation: OperationName, input: object) => Promise<BrokerAnswer>;

export type AskBrokerPorts = {
  readonly link: Pick<BrokerLink, "request">;
  readonly membership: Pick<Membership, "require">;
  readonly requestTimeoutMs: number;
};

const away = "The broker is away, and was not asked; `claudemesh daemon status` says why.";

export function createAskBroker({ link, membership, requestTimeoutMs }: AskBrokerPorts): AskBroker {
  return async (operation, input) => {
    const outcome = await link.request(operation, input, { timeoutMs: requestTimeoutMs });
    switch (outcome.type) {
      case "not_sent":
        // The broker of a former member is there, and asking again would not help.
        membership.require();
        throw new MeshError("broker_unreachable", away, { sent: false });
      case "timed_out":
      case "connection_lost":
        throw unanswered("The broker was asked and did not answer; it may have acted.");
      case "answered":
        return understand(outcome.status, outcome.body);
    }
  };
}

function understand(status: number, body: unknown): BrokerAnswer {
  const isObject = typeof body === "object" && body !== null && !Array.isArray(body);
  const isRefusal = status >= 400 && status <= 599 && isErrorBody(body);
  if (!isObject || !(isRefusal || (status >= 200 && status <= 299))) {
    throw unanswered("The broker's answer was not understood; it may have acted.");
  }
  const { retry_after_s: retryAfterS } = body as { retry_after_s?: unknown };
  const answer = { status, body: body as Record<string, unknown> };
  if (status !== 429 || typeof retryAfterS !== "number") return answer;
  return { ...answer, headers: { "retry-after": String(Math.ceil(retryAfterS)) } };
}

function unanswered(message: string): MeshError {
  return new MeshError("broker_unreachable", message, { sent: true });
}

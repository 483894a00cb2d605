// Daemons that break one rule each: ours behind a proxy that bends a single thing, before its local API or on its link to
// the broker. Each names the section and a scenario that must catch it.
import { type Breach, bodyOf, type ProxiedAnswer, type ProxiedRequest, withBody } from "./breaching-proxy.ts";
import {
  answerWith,
  bendAnswer,
  bendBody,
  bendRequest,
  consumeRefused,
  hideRetryAfter,
  refusal,
  type WrongServer,
} from "./wrong-server.ts";

const isSend = ({ path }: ProxiedRequest) => path === "/v1/send";

function withoutHeader(request: ProxiedRequest, header: string): ProxiedRequest {
  const { [header]: _header, ...headers } = request.headers;
  return { ...request, headers };
}

/** Takes sends only while the broker is there. */
function needBroker(): Breach {
  return {
    http: async (request, pass) => {
      if (!isSend(request)) return pass(request);
      const { "content-type": _type, "content-length": _length, ...headers } = request.headers;
      const health = await pass({ method: "GET", path: "/v1/health", headers, body: Buffer.alloc(0) });
      const { state } = (bodyOf(health).broker ?? {}) as { state?: string };
      return state === "online" ? pass(request) : refusal(503, "broker_unreachable", { retryable: true });
    },
  };
}

/** What was answered from a row is refused for its size; what is new passes. */
function answerOfKnown(answer: ProxiedAnswer): ProxiedAnswer {
  return answer.status === 202 ? answer : refusal(413, "payload_too_large");
}

const answering: readonly WrongServer[] = [
  {
    wrong: "a read mark moves with every call",
    section: "0",
    caughtBy: ["0-read-mark"],
    breach: () => {
      let marks = 0;
      return bendBody(
        ({ path }, { status }) => path.endsWith("/read") && status === 200,
        (body) => ({ ...body, read_at: Date.now() + marks++ }),
      );
    },
  },
  {
    wrong: "the Idempotency-Key header is passed over",
    section: "1.1",
    caughtBy: ["1.1-idempotency-key", "1.1-header-and-body"],
    breach: () => bendRequest((request) => withoutHeader(request, "idempotency-key")),
  },
  {
    wrong: "meta is written anew by a language that knows no other numbers",
    section: "1.1",
    caughtBy: ["1.1-numbers"],
    breach: () =>
      bendRequest((request) => {
        const { meta, ...rest } = bodyOf(request);
        return isSend(request) && meta !== undefined
          ? withBody(request, { ...rest, meta: JSON.parse(JSON.stringify(meta)) as object })
          : request;
      }),
  },
  {
    wrong: "a refused send consumes its id",
    section: "1.2",
    caughtBy: ["1.2-refusal-consumes-nothing"],
    breach: () => consumeRefused(isSend, (status) => status >= 400),
  },
  {
    wrong: "a done row is answered as if it were queued",
    section: "1.3",
    caughtBy: ["1.3-done-match"],
    breach: () =>
      bendAnswer(
        (request, { status }) => isSend(request) && status === 200,
        (answer) => ({ ...answer, status: 202 }),
      ),
  },
  {
    wrong: "a dead row is said to be queued again",
    section: "1.3",
    caughtBy: ["1.3-dead-match"],
    breach: () =>
      bendAnswer(
        (_request, answer) => bodyOf(answer).conflict === "outbox_dead_fingerprint_match",
        () => answerWith(202, { status: "queued", duplicate: true }),
      ),
  },
  {
    wrong: "conflicts do not show the two fingerprints",
    section: "1.3",
    caughtBy: ["1.3-pending-mismatch", "1.3-done-mismatch", "1.3-aborted"],
    breach: () =>
      bendBody(isSend, ({ daemon_fingerprint_prefix: _daemon, stored_fingerprint_prefix: _stored, ...rest }) => rest),
  },
  {
    wrong: "size is judged before the id is looked up",
    section: "1.3",
    caughtBy: ["1.3-lowered-limit", "1.3-row-before-checks"],
    breach: () => ({
      http: async (request, pass) =>
        isSend(request) && request.body.length > 1_500 && Object.hasOwn(bodyOf(request), "client_message_id")
          ? answerOfKnown(await pass(request))
          : pass(request),
    }),
  },
  {
    wrong: "a row in flight is said to be queued",
    section: "1.3",
    caughtBy: ["1.3-inflight-match"],
    breach: () =>
      bendBody(
        (request, answer) => isSend(request) && bodyOf(answer).status === "inflight",
        (body) => ({ ...body, status: "queued" }),
      ),
  },
];

const keeping: readonly WrongServer[] = [
  {
    wrong: "a requeue goes ahead although the fate is unknown",
    section: "1.4",
    caughtBy: ["1.4-requeue-fate-unknown"],
    breach: () =>
      bendRequest((request) => {
        return request.path === "/v1/outbox/requeue"
          ? withBody(request, { ...bodyOf(request), accept_duplicate: true })
          : request;
      }),
  },
  {
    wrong: "a done row can be requeued",
    section: "1.4",
    caughtBy: ["1.4-requeue-refused"],
    breach: () =>
      bendAnswer(
        (_request, answer) => bodyOf(answer).error === "not_requeueable",
        () => answerWith(200, {}),
      ),
  },
  {
    wrong: "Retry-After is not heeded",
    section: "1.4",
    caughtBy: ["1.4-retry-after"],
    breach: hideRetryAfter,
  },
  {
    wrong: "what comes twice is in the inbox twice",
    section: "1.6",
    caughtBy: ["1.6-inbox", "1.6-redelivery"],
    breach: () =>
      bendBody(
        ({ path }, { status }) => path.startsWith("/v1/inbox?") && status === 200,
        (body) => ({ ...body, items: (body.items as object[]).flatMap((item) => [item, item]) }),
      ),
  },
  {
    wrong: "a queued message is said to be delivered",
    section: "1.7",
    caughtBy: ["1.7-queued"],
    breach: () =>
      bendBody(
        (_request, answer) => bodyOf(answer).state === "queued" || bodyOf(answer).state === "inflight",
        (body) => ({ ...body, state: "delivered" }),
      ),
  },
  {
    wrong: "direct messages leave as plain envelopes",
    section: "1.8",
    caughtBy: ["1.8-sealed"],
    breach: () => ({ up: (frame) => (frame.type === "send" ? { ...frame, envelope_version: "1" } : frame) }),
  },
  {
    wrong: "a broker that lacks a feature is left without saying why",
    section: "1.10",
    caughtBy: ["1.10-unavailable"],
    breach: () => ({ closeCodeUp: (code) => (code === 4010 ? 1000 : code) }),
  },
  {
    wrong: "nothing is accepted while the broker is away",
    section: "2.5",
    caughtBy: ["2.5-broker-away"],
    breach: needBroker,
  },
];

/** `token`: the daemon's own. */
const guarding = (token: () => string): readonly WrongServer[] => [
  {
    wrong: "no token is needed",
    section: "2.2",
    caughtBy: ["2.2-token", "2.2-token-scheme"],
    breach: () =>
      bendRequest((request) => ({ ...request, headers: { ...request.headers, authorization: `Bearer ${token()}` } })),
  },
  {
    wrong: "every Host is good",
    section: "2.2",
    caughtBy: ["2.2-host"],
    breach: () => bendRequest((request) => ({ ...request, headers: { ...request.headers, host: "localhost" } })),
  },
  {
    wrong: "every Origin is good",
    section: "2.2",
    caughtBy: ["2.2-origin"],
    breach: () => bendRequest((request) => withoutHeader(request, "origin")),
  },
  {
    wrong: "CORS is open",
    section: "2.2",
    caughtBy: ["2.2-origin", "2.2-host"],
    breach: () =>
      bendAnswer(
        () => true,
        (answer) => ({ ...answer, headers: { ...answer.headers, "access-control-allow-origin": "*" } }),
      ),
  },
  {
    wrong: "a token in the query is passed over",
    section: "2.2",
    caughtBy: ["2.2-token-in-query", "2.2-unknown-fields"],
    breach: () => bendRequest((request) => ({ ...request, path: request.path.split("?", 1)[0] ?? "" })),
  },
];

export const wrongDaemons = (token: () => string): readonly WrongServer[] => [
  ...answering,
  ...keeping,
  ...guarding(token),
];

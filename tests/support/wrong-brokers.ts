// Brokers that break one rule each: ours behind a proxy that bends a single thing. Each names the section and a scenario
// that must catch it.
import {
  type Breach,
  bodyOf,
  type Pass,
  type ProxiedAnswer,
  type ProxiedRequest,
  withBody,
} from "./breaching-proxy.ts";
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

const isSend = ({ method, path }: ProxiedRequest) => method === "POST" && path.endsWith("/messages");
const tokenOf = ({ headers }: ProxiedRequest) => String(headers.authorization);

const identity: readonly WrongServer[] = [
  {
    wrong: "the retry of a topic's creation is a conflict",
    section: "0",
    caughtBy: ["0-topic-create"],
    breach: () =>
      bendAnswer(
        ({ path }, { status }) => path.endsWith("/topics") && status === 200,
        () => refusal(409, "exists_with_other_content"),
      ),
  },
  {
    wrong: "a retry under the same lease_request_id is a new lease",
    section: "0",
    caughtBy: ["0-queue-lease"],
    breach: () => {
      let leases = 0;
      return bendRequest((request) => {
        if (!request.path.endsWith("/lease")) return request;
        const body = bodyOf(request);
        return withBody(request, { ...body, lease_request_id: `${body.lease_request_id}-${leases++}` });
      });
    },
  },
  {
    wrong: "unknown fields are passed over",
    section: "1.1",
    caughtBy: ["1.1-unknown-fields"],
    breach: () =>
      bendRequest((request) => {
        if (!isSend(request)) return request;
        const { colour: _colour, ...known } = bodyOf(request);
        return Object.hasOwn(bodyOf(request), "colour") ? withBody(request, known) : request;
      }),
  },
  {
    wrong: "the request is read by a lenient parser and written anew",
    section: "1.1",
    caughtBy: ["1.1-strict-json", "1.1-duplicate-key"],
    breach: () =>
      bendRequest((request) => {
        const read = bodyOf(request);
        return isSend(request) && Object.keys(read).length > 0 ? withBody(request, read) : request;
      }),
  },
  {
    wrong: "ids are trimmed",
    section: "1.1",
    caughtBy: ["1.1-invalid-ids"],
    breach: () =>
      bendRequest((request) => {
        const body = bodyOf(request);
        const id = body.client_message_id;
        if (!isSend(request) || typeof id !== "string" || id.trim() === id) return request;
        return withBody(request, { ...body, client_message_id: id.trim() });
      }),
  },
  {
    wrong: "a member that does not own an id learns which message has it",
    section: "1.2",
    caughtBy: ["1.2-owner"],
    breach: () =>
      bendBody(
        (_request, answer) => bodyOf(answer).conflict === "client_id_owned_by_another_member",
        (body) => ({ ...body, broker_message_id: "0198c0de-0000-7000-8000-0000000000aa" }),
      ),
  },
  {
    wrong: "a refused send consumes its id",
    section: "1.2",
    caughtBy: ["1.2-refusal-consumes-nothing", "1.2-refused-id-with-other-content"],
    breach: () => consumeRefused(isSend, (status) => status === 404),
  },
];

/** Sends of one id that overlap are told apart, so that each is accepted. */
function acceptRacers(): Breach {
  const open = new Map<unknown, number>();
  return {
    http: async (request, pass) => {
      const body = bodyOf(request);
      const id = body.client_message_id;
      if (!isSend(request) || typeof id !== "string") return pass(request);
      const racing = open.get(id) ?? 0;
      open.set(id, racing + 1);
      try {
        const answer = await pass(
          racing === 0 ? request : withBody(request, { ...body, client_message_id: `${id}~${racing}` }),
        );
        const own = bodyOf(answer);
        return Object.hasOwn(own, "client_message_id") ? withBody(answer, { ...own, client_message_id: id }) : answer;
      } finally {
        open.set(id, (open.get(id) ?? 1) - 1);
      }
    },
  };
}

const accepting: readonly WrongServer[] = [
  {
    wrong: "a duplicate is answered 201",
    section: "1.5",
    caughtBy: ["1.5-duplicate", "1.5-race-same-content"],
    breach: () =>
      bendAnswer(
        (request, { status }) => isSend(request) && status === 200,
        (answer) => ({ ...answer, status: 201 }),
      ),
  },
  {
    wrong: "`duplicate` is left out",
    section: "1.5",
    caughtBy: ["1.5-duplicate", "1.5-accepted"],
    breach: () => bendBody(isSend, ({ duplicate: _duplicate, ...rest }) => rest),
  },
  {
    wrong: "two sends of one id at once are both accepted",
    section: "1.5",
    caughtBy: ["1.5-race-same-content"],
    breach: acceptRacers,
  },
  {
    wrong: "a fence is answered and forgotten",
    section: "1.5",
    caughtBy: ["1.5-fence-first"],
    breach: () => ({
      http: async (request, pass) =>
        request.path.endsWith("/fence") && !(await isKnown(request, pass))
          ? answerWith(200, { fate: "fenced" })
          : pass(request),
    }),
  },
  {
    wrong: "the history is out of order",
    section: "1.5",
    caughtBy: ["1.5-history-order"],
    breach: () =>
      bendBody(
        ({ path }, { status }) => path.includes("/history") && status === 200,
        (body) => ({ ...body, items: [...(body.items as unknown[])].reverse() }),
      ),
  },
  {
    wrong: "size is judged before the id is looked up",
    section: "1.5",
    caughtBy: ["1.5-retry-before-size"],
    breach: () => ({
      http: async (request, pass) =>
        isSend(request) && request.body.length > 65_536 ? refusal(413, "payload_too_large") : pass(request),
    }),
  },
  {
    wrong: "a stranger hears whether an id is used",
    section: "1.5",
    caughtBy: ["1.5-outsiders-learn-nothing"],
    breach: () => {
      const used = new Set<unknown>();
      return {
        http: async (request, pass) => {
          const id = bodyOf(request).client_message_id;
          const answer = await pass(request);
          if (isSend(request) && answer.status === 201) used.add(id);
          return answer.status === 401 && used.has(id) ? refusal(409, "idempotency_key_reused") : answer;
        },
      };
    },
  },
  {
    wrong: "a spent budget has no Retry-After",
    section: "1.5",
    caughtBy: ["1.5-rate-limit"],
    breach: hideRetryAfter,
  },
];

async function isKnown(request: ProxiedRequest, pass: Pass): Promise<boolean> {
  const { fingerprint } = bodyOf(request);
  const path = `${request.path.replace(/\/fence$/, "")}?fingerprint=${fingerprint}`;
  const { "content-type": _type, "content-length": _length, ...headers } = request.headers;
  return bodyOf(await pass({ ...request, method: "GET", path, headers, body: Buffer.alloc(0) })).fate !== "none";
}

/** Every member reads with the token of the one that sent last. */
function readAsSender(): Breach {
  let sender = "";
  return {
    http: (request, pass) => {
      if (isSend(request)) sender = tokenOf(request);
      const reads = request.method === "GET" && /\/(history|mentions|search)\b/.test(request.path);
      return pass(
        reads && sender !== "" ? { ...request, headers: { ...request.headers, authorization: sender } } : request,
      );
    },
  };
}

const delivering: readonly WrongServer[] = [
  {
    wrong: "a lease hands out what another lease holds",
    section: "1.6",
    caughtBy: ["1.6-lease-excludes"],
    breach: () => {
      const leased = new Map<string, ProxiedAnswer>();
      return {
        http: async (request, pass) => {
          const answer = await pass(request);
          if (!request.path.endsWith("/lease") || answer.status !== 200) return answer;
          if ((bodyOf(answer).items as unknown[]).length === 0) return leased.get(request.path) ?? answer;
          leased.set(request.path, answer);
          return answer;
        },
      };
    },
  },
  {
    wrong: "a delivery is settled when it is pushed",
    section: "1.6",
    caughtBy: ["1.6-settled-by-ack"],
    breach: () => {
      let acks = 1_000_000;
      return {
        down: (frame, back) => {
          if (frame.type === "message") back({ type: "ack", id: acks++, history_ids: [frame.history_id] });
          return frame.type === "reply" && Number(frame.id) >= 1_000_000 ? undefined : frame;
        },
      };
    },
  },
  {
    wrong: "a member reads what was sent to another",
    section: "1.6",
    caughtBy: ["1.6-history-visibility", "1.6-mention-visibility", "1.6-topic-visibility"],
    breach: readAsSender,
  },
  {
    wrong: "an ack that was made is lease_lost the second time",
    section: "1.6",
    caughtBy: ["1.6-ack"],
    breach: () => {
      const seen = new Set<string>();
      return {
        http: async (request, pass) => {
          const key = request.path + request.body.toString();
          if (request.path.endsWith("/ack") && seen.has(key)) return refusal(409, "lease_lost", { lost: [] });
          seen.add(key);
          return pass(request);
        },
      };
    },
  },
  {
    wrong: "a client gets pushes too",
    section: "1.6",
    caughtBy: ["1.6-clients-get-no-pushes"],
    breach: () => {
      let last: object | undefined;
      return {
        down: (frame) => {
          if (frame.type === "message") last = frame;
          return frame;
        },
        up: (frame, back) => {
          if (frame.type === "history" && last !== undefined) back(last);
          return frame;
        },
      };
    },
  },
  {
    wrong: "a sealed body is stored as text",
    section: "1.8",
    caughtBy: ["1.8-bytes"],
    breach: () =>
      bendBody(
        ({ path }) => path.includes("/history"),
        (body) => {
          const items = ((body.items ?? []) as Record<string, unknown>[]).map(({ body_base64, ...item }) => {
            return typeof body_base64 === "string"
              ? { ...item, body: Buffer.from(body_base64, "base64").toString("latin1") }
              : item;
          });
          return { ...body, items };
        },
      ),
  },
];

const talking: readonly WrongServer[] = [
  {
    wrong: "the dedupe window is below the floor",
    section: "1.10",
    caughtBy: ["1.10-features"],
    breach: () => ({
      down: (frame) => {
        if (frame.type !== "proof") return frame;
        const features = frame.features as Record<string, object>;
        const dedupe = { ...features.client_message_id_dedupe, dedupe_retention_days: 3 };
        return { ...frame, features: { ...features, client_message_id_dedupe: dedupe } };
      },
    }),
  },
  {
    wrong: "a daemon that is replaced does not hear why",
    section: "1.10",
    caughtBy: ["1.10-prefer-newest"],
    breach: () => ({ closeCode: (code) => (code === 4003 ? 1000 : code) }),
  },
  {
    wrong: "direct messages in clear are taken",
    section: "6.1",
    caughtBy: ["6.1-sealed-by-default"],
    breach: () =>
      bendAnswer(
        (request, { status }) => isSend(request) && status === 422,
        () => answerWith(201, {}),
      ),
  },
  {
    wrong: "the broker names a key that it does not hold",
    section: "8.3",
    caughtBy: ["8.3-broker-proof"],
    breach: () => ({
      down: (frame) => (frame.type === "proof" ? { ...frame, signature: "0".repeat(128) } : frame),
    }),
  },
  {
    wrong: "a bearer token makes further tokens",
    section: "8.3",
    caughtBy: ["8.3-token-makes-none"],
    breach: () =>
      bendAnswer(
        ({ path }, { status }) => path.endsWith("/tokens") && status === 403,
        () => answerWith(201, {}),
      ),
  },
  {
    wrong: "every member may change the mesh's settings",
    section: "8.7",
    caughtBy: ["8.7-settings"],
    breach: () =>
      bendAnswer(
        ({ path, method }, { status }) => path.endsWith("/settings") && method === "PUT" && status === 403,
        () => answerWith(200, {}),
      ),
  },
  {
    wrong: "a mesh is made without the admin token",
    section: "5.1",
    caughtBy: ["5.1-admin"],
    breach: () =>
      bendAnswer(
        ({ path, method }, { status }) => path === "/v1/meshes" && method === "POST" && status === 401,
        () => answerWith(201, {}),
      ),
  },
  {
    wrong: "a limit out of range is clamped",
    section: "5.2",
    caughtBy: ["5.2-limits"],
    breach: () =>
      bendRequest((request) => ({ ...request, path: request.path.replace(/limit=(?:0|1001)(?=&|$)/, "limit=1000") })),
  },
  {
    wrong: "every member may delete topics and revoke",
    section: "5.2",
    caughtBy: ["5.2-owners-only"],
    breach: () =>
      bendAnswer(
        (_request, { status }) => status === 403,
        () => answerWith(200, {}),
      ),
  },
  {
    wrong: "errors have no `retryable`",
    section: "5.2",
    caughtBy: ["5.2-needs-token", "5.2-no-such-path"],
    breach: () =>
      bendBody(
        (_request, { status }) => status >= 400,
        ({ retryable: _retryable, ...rest }) => rest,
      ),
  },
  {
    wrong: "replies are mixed up when requests are pipelined",
    section: "5.3",
    caughtBy: ["5.3-pipelining"],
    breach: () => {
      let kept: Record<string, unknown> | undefined;
      return {
        down: (frame, _back) => {
          const { client_message_id: id } = (frame.body ?? {}) as { client_message_id?: string };
          if (frame.type !== "reply" || !id?.startsWith("pipe")) return frame;
          const mixed = kept === undefined ? frame : { ...frame, body: kept.body };
          kept = frame;
          return mixed;
        },
      };
    },
  },
  {
    wrong: "a revoked member is cut off without a word",
    section: "5.3",
    caughtBy: ["5.3-revoked"],
    breach: () => ({ down: (frame) => (frame.type === "member_revoked" ? undefined : frame) }),
  },
];

export const wrongBrokers: readonly WrongServer[] = [...identity, ...accepting, ...delivering, ...talking];

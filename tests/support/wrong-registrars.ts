// Brokers whose registrar or `once` breaks one rule each: ours behind a proxy that bends a single thing. Each names the
// section and a scenario that must catch it.
import { type Breach, bodyOf, type ProxiedAnswer, type ProxiedRequest, withBody } from "./breaching-proxy.ts";
import { answerWith, bendAnswer, bendBody, bendRequest, refusal, type WrongServer } from "./wrong-server.ts";

const isRegister = ({ method, path }: ProxiedRequest) => method === "POST" && path.endsWith("/registrar/requests");
const isApprove = ({ method, path }: ProxiedRequest) => method === "POST" && path.endsWith("/registrar/approvals");
const isOnce =
  (action: string) =>
  ({ method, path }: ProxiedRequest) =>
    method === "POST" && path.includes("/once/") && path.endsWith(`/${action}`);
const codeOf = (answer: ProxiedAnswer) => bodyOf(answer).code ?? bodyOf(answer).error;

/** Refusals by this code become this answer. */
const insteadOf = (code: string, isMeant: (request: ProxiedRequest) => boolean, status: number, body: object): Breach =>
  bendAnswer(
    (request, answer) => isMeant(request) && codeOf(answer) === code,
    () => answerWith(status, body),
  );

const newRegistration = { registration: { registration_id: "another" }, state: "registered_closed", duplicate: false };

const retries: readonly WrongServer[] = [
  {
    wrong: "the retry of an approval shows a nonce again",
    section: "0",
    caughtBy: ["0-approval"],
    breach: () =>
      bendBody(
        (request, { status }) => isApprove(request) && status === 200,
        (body) => ({ ...body, authorization_nonce: "cmn_again" }),
      ),
  },
  {
    wrong: "the retry of a registration is a conflict",
    section: "0",
    caughtBy: ["0-registration"],
    breach: () =>
      bendAnswer(
        (request, { status }) => isRegister(request) && status === 200,
        () => refusal(409, "replay_duplicate", { code: "REPLAY_DUPLICATE", conflict: "request_mismatch" }),
      ),
  },
  {
    wrong: "a caller that lost the answer to its claim is locked out",
    section: "0",
    caughtBy: ["0-once-claim"],
    breach: () => {
      const claimed = new Set<string>();
      return {
        http: async (request, pass) => {
          const answer = await pass(request);
          if (!isOnce("claim")(request) || answer.status !== 201) return answer;
          const isRetry = claimed.has(request.path);
          claimed.add(request.path);
          return isRetry ? refusal(409, "running", bodyOf(answer)) : answer;
        },
      };
    },
  },
];

const identities: readonly WrongServer[] = [
  {
    wrong: "the effect's key is computed from other bytes",
    section: "4.1",
    caughtBy: ["4.1-digests"],
    breach: () =>
      bendBody(
        (request, { status }) => isRegister(request) && status === 201,
        (body) => ({ ...body, registration: { ...(body.registration as object), effect_key: "0".repeat(64) } }),
      ),
  },
  {
    wrong: "texts are composed, not refused",
    section: "4.1",
    caughtBy: ["4.1-texts"],
    breach: () =>
      bendRequest((request) =>
        isRegister(request) ? { ...request, body: Buffer.from(request.body.toString().normalize("NFC")) } : request,
      ),
  },
  {
    wrong: "another attempt is another request",
    section: "4.1",
    caughtBy: ["4.1-attempt-is-no-identity"],
    breach: () =>
      bendAnswer(
        (request, answer) => {
          const { attempt_id } = (bodyOf(answer).registration ?? {}) as { attempt_id?: string };
          return isRegister(request) && answer.status === 200 && attempt_id !== bodyOf(request).attempt_id;
        },
        () => answerWith(201, newRegistration),
      ),
  },
  {
    wrong: "an approval is taken without its signature",
    section: "4.2",
    caughtBy: ["4.2-approve-signature"],
    breach: () => insteadOf("forbidden", isApprove, 201, { approval_id: "x", authorization_nonce: "n", not_after: 1 }),
  },
  {
    wrong: "members read the audit",
    section: "4.2",
    caughtBy: ["4.2-roles"],
    breach: () => insteadOf("forbidden", ({ path }) => path.endsWith("/audit"), 200, { items: [], next_cursor: null }),
  },
  {
    wrong: "a revoked approval registers",
    section: "4.2",
    caughtBy: ["4.2-revoke"],
    breach: () =>
      bendAnswer(
        (_request, answer) => bodyOf(answer).reason === "revoked",
        () => answerWith(201, newRegistration),
      ),
  },
  {
    wrong: "the resolver does not know a key, with 404",
    section: "4.2",
    caughtBy: ["4.2-resolver"],
    breach: () =>
      bendAnswer(
        (_request, answer) => bodyOf(answer).state === "unknown",
        () => refusal(404, "not_found"),
      ),
  },
];

const checks: readonly WrongServer[] = [
  {
    wrong: "the nonce is asked before the key",
    section: "4.3",
    caughtBy: ["4.3-key-third"],
    breach: () =>
      bendAnswer(
        (request, { status }) =>
          isRegister(request) && status === 200 && bodyOf(request).authorization_nonce === "wrong",
        () => refusal(403, "nonce_unbound", { code: "NONCE_UNBOUND" }),
      ),
  },
  {
    wrong: "a stale request is answered as if it were fresh",
    section: "4.3",
    caughtBy: ["4.3-stale-second"],
    breach: () =>
      bendRequest((request) => {
        const { expires_at: _expires, ...body } = bodyOf(request);
        return isRegister(request) && Object.hasOwn(bodyOf(request), "expires_at") ? withBody(request, body) : request;
      }),
  },
  {
    wrong: "a refusal consumes the key",
    section: "4.3",
    caughtBy: ["4.3-all-or-nothing"],
    breach: () => {
      const refused = new Set<unknown>();
      return {
        http: async (request, pass) => {
          const answer = await pass(request);
          const key = bodyOf(request).logical_request_key;
          if (isRegister(request) && answer.status === 403) refused.add(key);
          return isRegister(request) && answer.status === 201 && refused.has(key)
            ? refusal(409, "replay_duplicate", { code: "REPLAY_DUPLICATE", conflict: "request_mismatch" })
            : answer;
        },
      };
    },
  },
  {
    wrong: "a spent nonce leaves no trace in the audit",
    section: "4.3",
    caughtBy: ["4.3-audit"],
    breach: () =>
      bendBody(
        ({ path }, { status }) => path.includes("/registrar/audit") && status === 200,
        (body) => ({
          ...body,
          items: (body.items as { code?: string }[]).filter(({ code }) => code !== "REPLAY_NONCE_CONSUMED"),
        }),
      ),
  },
];

const answers: readonly WrongServer[] = [
  {
    wrong: "a fresh nonce buys the effect again",
    section: "4.4",
    caughtBy: ["4.4-rp-02"],
    breach: () =>
      bendAnswer(
        (_request, answer) => bodyOf(answer).conflict === "effect_exists",
        () => answerWith(201, newRegistration),
      ),
  },
  {
    wrong: "a spent nonce is good for another key",
    section: "4.4",
    caughtBy: ["4.4-rp-03"],
    breach: () => insteadOf("REPLAY_NONCE_CONSUMED", isRegister, 201, newRegistration),
  },
  {
    wrong: "a nonce floats free of what was signed",
    section: "4.4",
    caughtBy: ["4.4-rp-04"],
    breach: () =>
      bendAnswer(
        (_request, answer) => bodyOf(answer).reason === "other_envelope",
        () => answerWith(201, newRegistration),
      ),
  },
  {
    wrong: "of several at once more than one wins",
    section: "4.4",
    caughtBy: ["4.4-rp-09"],
    breach: () =>
      bendAnswer(
        (request, answer) => isRegister(request) && (answer.status === 200 || codeOf(answer) === "ATTEMPT_COLLISION"),
        (answer) => ({ ...answer, status: 201 }),
      ),
  },
  {
    wrong: "an expired request frees its key",
    section: "4.4",
    caughtBy: ["4.4-rp-08"],
    breach: () => {
      const stale = new Set<unknown>();
      return {
        http: async (request, pass) => {
          const answer = await pass(request);
          const key = bodyOf(request).logical_request_key;
          if (isRegister(request) && answer.status === 410) stale.add(key);
          return isRegister(request) && answer.status === 200 && stale.has(key)
            ? answerWith(201, newRegistration)
            : answer;
        },
      };
    },
  },
  {
    wrong: "a registration shows its last attempt",
    section: "4.5",
    caughtBy: ["4.5-records-stay"],
    breach: () => {
      let last: unknown;
      return {
        http: async (request, pass) => {
          const answer = await pass(request);
          if (isRegister(request)) last = bodyOf(request).attempt_id;
          const body = bodyOf(answer);
          if (request.method !== "GET" || body.registration === undefined) return answer;
          return withBody(answer, { ...body, registration: { ...(body.registration as object), attempt_id: last } });
        },
      };
    },
  },
  {
    wrong: "a registrar that is closed does not say why",
    section: "4.5",
    caughtBy: ["4.5-open-or-says-why"],
    breach: () => ({
      http: (request, pass) =>
        request.path.includes("/registrar/")
          ? Promise.resolve(answerWith(503, { error: "replay_surface_not_fit", message: "closed", retryable: true }))
          : pass(request),
    }),
  },
];

const once: readonly WrongServer[] = [
  {
    wrong: "a lease that has ended makes the key free",
    section: "4.6",
    caughtBy: ["4.6-uncertain"],
    breach: () => insteadOf("uncertain", isOnce("claim"), 201, { epoch: 2, lease_until: Date.now() + 60_000 }),
  },
  {
    wrong: "a later result replaces the first",
    section: "4.6",
    caughtBy: ["4.6-record"],
    breach: () => insteadOf("epoch_settled", isOnce("record"), 200, { epoch: 1, outcome: "done" }),
  },
  {
    wrong: "any caller records",
    section: "4.6",
    caughtBy: ["4.6-holder"],
    breach: () => insteadOf("forbidden", isOnce("record"), 200, { epoch: 1, outcome: "done" }),
  },
  {
    wrong: "other inputs get the result of the first",
    section: "4.6",
    caughtBy: ["4.6-inputs", "4.6-record"],
    breach: () => insteadOf("inputs_mismatch", isOnce("claim"), 200, { epoch: 1, result: null }),
  },
  {
    wrong: "two claims at once both run",
    section: "4.6",
    caughtBy: ["4.6-race", "4.6-running"],
    breach: () => insteadOf("running", isOnce("claim"), 201, { epoch: 1, lease_until: Date.now() + 60_000 }),
  },
];

export const wrongRegistrars: readonly WrongServer[] = [...retries, ...identities, ...checks, ...answers, ...once];

// Brokers whose spaces break one rule each: ours behind a proxy that bends a single thing. Each names the section and a
// scenario that must catch it.
import { type Breach, bodyOf, type ProxiedAnswer, type ProxiedRequest, withBody } from "./breaching-proxy.ts";
import { answerWith, bendAnswer, bendBody, bendRequest, refusal, type WrongServer } from "./wrong-server.ts";

type Commit = Record<string, unknown> & { readonly localSeq?: number };

const isCommit = ({ method, path }: ProxiedRequest) => method === "POST" && path.endsWith("/commits");
const isOpen = ({ method, path }: ProxiedRequest) => method === "POST" && path.endsWith("/sessions");
const commitOf = (request: ProxiedRequest) => (bodyOf(request).commit ?? {}) as Commit;
const errorOf = (answer: ProxiedAnswer) => bodyOf(answer).error;
const accepted = (seq = 1) => answerWith(200, { seq, resolvedPendingReads: [], replayed: false });

/** Answers that refuse with this code become an acceptance. */
const forgive = (error: string, isMeant: (request: ProxiedRequest) => boolean = () => true): Breach =>
  bendAnswer(
    (request, answer) => errorOf(answer) === error && isMeant(request),
    () => accepted(),
  );

/** Whichever token comes, the session's last one goes on: no caller ever loses a session. */
function forgetTokens(): Breach {
  const lastTokens = new Map<unknown, unknown>();
  return {
    http: async (request, pass) => {
      const body = bodyOf(request);
      const token = lastTokens.get(body.sessionId);
      const answer = await pass(token === undefined ? request : withBody(request, { ...body, sessionToken: token }));
      const { sessionId, sessionToken } = bodyOf(answer);
      if (isOpen(request) && answer.status === 200) lastTokens.set(sessionId, sessionToken);
      return answer;
    },
  };
}

const retries: readonly WrongServer[] = [
  {
    wrong: "the retry of an open is another session",
    section: "0",
    caughtBy: ["0-session-open"],
    breach: () => {
      const seen = new Map<unknown, number>();
      return bendRequest((request) => {
        if (!isOpen(request)) return request;
        const body = bodyOf(request);
        const times = seen.get(body.openId) ?? 0;
        seen.set(body.openId, times + 1);
        return times === 0 ? request : withBody(request, { ...body, openId: `${body.openId}-${times}` });
      });
    },
  },
  {
    wrong: "the retry of a commit gets another seq",
    section: "0",
    caughtBy: ["0-commit", "0-commit-with-sends"],
    breach: () =>
      bendBody(
        (request, answer) => isCommit(request) && bodyOf(answer).replayed === true,
        (body) => ({ ...body, seq: Number(body.seq) + 1 }),
      ),
  },
];

const valuesAndSessions: readonly WrongServer[] = [
  {
    wrong: "a bigint comes back as a number",
    section: "3.1",
    caughtBy: ["3.1-values"],
    breach: () =>
      bendAnswer(
        ({ path }) => path.endsWith("/query"),
        (answer) => {
          const text = answer.body.toString().replaceAll('{"/":{"bigint@1":"12"}}', "12");
          return { ...answer, body: Buffer.from(text) };
        },
      ),
  },
  {
    wrong: "a PatchError does not say which patch",
    section: "3.1",
    caughtBy: ["3.1-patch-errors"],
    breach: () =>
      bendBody(
        (_request, answer) => errorOf(answer) === "patch_error",
        ({ patchIndex: _patchIndex, ...body }) => body,
      ),
  },
  {
    wrong: "fields of an operation that it does not have are passed over",
    section: "3.1",
    caughtBy: ["3.1-operations"],
    breach: () =>
      bendRequest((request) => {
        if (!request.body.includes('"colour"')) return request;
        return { ...request, body: Buffer.from(request.body.toString().replaceAll(',"colour":1', "")) };
      }),
  },
  {
    wrong: "the token does not rotate",
    section: "3.2",
    caughtBy: ["3.2-resume", "3.2-stale-token"],
    breach: () => {
      const first = new Map<unknown, unknown>();
      const forgetting = forgetTokens();
      return {
        http: async (request, pass) => {
          const answer = (await forgetting.http?.(request, pass)) ?? (await pass(request));
          const body = bodyOf(answer);
          if (!isOpen(request) || answer.status !== 200) return answer;
          first.set(body.sessionId, first.get(body.sessionId) ?? body.sessionToken);
          return withBody(answer, { ...body, sessionToken: first.get(body.sessionId) });
        },
      };
    },
  },
  {
    wrong: "whatever an old token brings is taken",
    section: "3.2",
    caughtBy: ["3.2-stale-token", "3.2-bad-opens"],
    breach: forgetTokens,
  },
  {
    wrong: "the older connection hears of another session",
    section: "3.2",
    caughtBy: ["3.2-revoked-push"],
    breach: () => ({ down: (frame) => (frame.type === "session.revoked" ? { ...frame, sessionId: "other" } : frame) }),
  },
];

/** What a commit of a session was answered, by its localSeq. */
function rememberVerdicts(
  bend: (first: ProxiedAnswer, request: ProxiedRequest, again: ProxiedAnswer) => ProxiedAnswer,
): Breach {
  const verdicts = new Map<string, ProxiedAnswer>();
  return {
    http: async (request, pass) => {
      const answer = await pass(request);
      if (!isCommit(request)) return answer;
      const key = `${bodyOf(request).sessionId}/${commitOf(request).localSeq}`;
      const first = verdicts.get(key);
      if (first === undefined) verdicts.set(key, answer);
      return first === undefined ? answer : bend(first, request, answer);
    },
  };
}

/** The basis of a pending read is taken to be the highest layer that it names. */
function raiseBases(): Breach {
  const seqs = new Map<string, number>();
  return {
    http: async (request, pass) => {
      if (!isCommit(request)) return pass(request);
      const body = bodyOf(request);
      const commit = commitOf(request);
      const reads = (commit.reads ?? {}) as { pending?: { localSeq: number; basisSeq?: number }[] };
      const pending = (reads.pending ?? []).map((read) => {
        const seq = seqs.get(`${body.sessionId}/${read.localSeq}`);
        return read.basisSeq === undefined || seq === undefined ? read : { ...read, basisSeq: seq };
      });
      const raised = { ...body, commit: { ...commit, reads: { ...reads, pending } } };
      const answer = await pass(pending.length === 0 ? request : withBody(request, raised));
      if (answer.status === 200) seqs.set(`${body.sessionId}/${commit.localSeq}`, Number(bodyOf(answer).seq));
      return answer;
    },
  };
}

const commits: readonly WrongServer[] = [
  {
    wrong: "another commit under a localSeq gets the first one's verdict",
    section: "3.3",
    caughtBy: ["3.3-replay-mismatch"],
    breach: () => rememberVerdicts((first) => first),
  },
  {
    wrong: "a rejected commit that is sent again is taken",
    section: "3.3",
    caughtBy: ["3.3-rejection-is-durable"],
    breach: () => rememberVerdicts((first, _request, again) => (first.status === 200 ? again : accepted(9))),
  },
  {
    wrong: "a lower localSeq is taken late",
    section: "3.3",
    caughtBy: ["3.3-local-seq-order"],
    breach: () => forgive("local_seq_passed_error"),
  },
  {
    wrong: "a commit is taken that rests on a rejected one",
    section: "3.3",
    caughtBy: ["3.3-dependencies"],
    breach: () => forgive("dependency_rejected_error"),
  },
  {
    wrong: "only the first stale read is named",
    section: "3.3",
    caughtBy: ["3.3-all-conflicts"],
    breach: () =>
      bendBody(
        (_request, answer) => errorOf(answer) === "conflict_error",
        (body) => ({ ...body, conflicts: (body.conflicts as unknown[]).slice(0, 1) }),
      ),
  },
  {
    wrong: "writes above and below a path are no conflict",
    section: "3.3",
    caughtBy: ["3.3-overlap", "3.3-whole-writes"],
    breach: () =>
      bendAnswer(
        (_request, answer) => {
          const { error, conflicts } = bodyOf(answer);
          return (
            error === "conflict_error" && (conflicts as { path: string[] }[]).every(({ path }) => path.length !== 2)
          );
        },
        () => accepted(),
      ),
  },
  {
    wrong: "a pending read rests on its highest layer alone",
    section: "3.3",
    caughtBy: ["3.3-pending-basis", "3.3-pending-moves"],
    breach: raiseBases,
  },
  {
    wrong: "a pending read without a basis is taken as it is",
    section: "3.3",
    caughtBy: ["3.3-pending-needs-basis"],
    breach: () => forgive("basis_required_error"),
  },
  {
    wrong: "a commit may ask for any amount of work",
    section: "3.3",
    caughtBy: ["3.3-too-expensive"],
    breach: () => forgive("commit_too_expensive"),
  },
  {
    wrong: "the messages of a rejected commit are sent all the same",
    section: "3.3",
    caughtBy: ["3.3-sends-not-at-all"],
    breach: () => ({
      http: async (request, pass) => {
        const answer = await pass(request);
        const { sends } = commitOf(request);
        if (!isCommit(request) || answer.status === 200 || !Array.isArray(sends)) return answer;
        const path = request.path.replace(/\/spaces\/.*$/, "/messages");
        for (const send of sends as object[]) await pass({ ...withBody(request, send), path });
        return answer;
      },
    }),
  },
];

const history: readonly WrongServer[] = [
  {
    wrong: "a read at a past seq shows the present",
    section: "3.4",
    caughtBy: ["3.4-point-in-time"],
    breach: () => bendRequest((request) => ({ ...request, path: request.path.replace(/\?atSeq=\d+$/, "") })),
  },
  {
    wrong: "a deleted entity looks as if it never was",
    section: "3.4",
    caughtBy: ["3.4-entity", "3.4-point-in-time"],
    breach: () =>
      bendAnswer(
        ({ path }, answer) => path.includes("/entities/") && bodyOf(answer).deleted === true,
        () => refusal(404, "entity_not_found"),
      ),
  },
  {
    wrong: "the log shows commits without what they read",
    section: "3.4",
    caughtBy: ["3.4-log"],
    breach: () =>
      bendBody(
        ({ path }) => path.endsWith("/log"),
        (body) => ({
          ...body,
          items: (body.items as { original: object }[]).map((item) => ({
            ...item,
            original: { ...item.original, reads: { confirmed: [], pending: [] } },
          })),
        }),
      ),
  },
  {
    wrong: "main shows through on a branch",
    section: "3.4",
    caughtBy: ["3.4-branch-isolation"],
    breach: () =>
      bendRequest((request) => {
        return request.path.includes("/entities/a%3A1?branch=")
          ? { ...request, path: request.path.replace(/\?branch=.*$/, "") }
          : request;
      }),
  },
  {
    wrong: "a deleted branch is written",
    section: "3.4",
    caughtBy: ["3.4-branch-deleted"],
    breach: () => forgive("branch_deleted", isCommit),
  },
  {
    wrong: "a merge that has gone stale is taken",
    section: "3.4",
    caughtBy: ["3.4-merge-stale"],
    breach: () => forgive("conflict_error", (request) => commitOf(request).merge !== undefined),
  },
  {
    wrong: "a merge may name any base",
    section: "3.4",
    caughtBy: ["3.4-merge-false-context"],
    breach: () => forgive("invalid_merge", isCommit),
  },
  {
    wrong: "a diff is the other way round",
    section: "3.4",
    caughtBy: ["3.4-diff"],
    breach: () =>
      bendBody(
        ({ path }) => path.includes("/diff?"),
        (body) => ({ ...body, added: body.removed, removed: body.added }),
      ),
  },
];

/** Frames go out after the reply that they explain. */
function holdFrames(): Breach {
  let held: object | undefined;
  return {
    down: (frame) => {
      if (frame.type !== "sync") return frame;
      const before = held;
      held = frame;
      return before;
    },
  };
}

const watching: readonly WrongServer[] = [
  {
    wrong: "a verdict goes before the frames that explain it",
    section: "3.5",
    caughtBy: ["3.5-verdict-after-frames"],
    breach: holdFrames,
  },
  {
    wrong: "who watches gets everything again, whatever it has seen",
    section: "3.5",
    caughtBy: ["3.5-seen-seq"],
    breach: () => ({ up: (frame) => (frame.type === "space.watch" ? { ...frame, seenSeq: 0 } : frame) }),
  },
  {
    wrong: "what was deleted is not reported",
    section: "3.5",
    caughtBy: ["3.5-seen-seq", "3.5-order"],
    breach: () => ({
      down: (frame) =>
        frame.type === "sync"
          ? { ...frame, upserts: (frame.upserts as { deleted?: true }[]).filter(({ deleted }) => deleted !== true) }
          : frame,
    }),
  },
  {
    wrong: "a frame claims more own commits than it shows",
    section: "3.5",
    caughtBy: ["3.5-caught-up"],
    breach: () => ({ down: (frame) => (frame.type === "sync" ? { ...frame, caughtUpLocalSeq: 99 } : frame) }),
  },
  {
    wrong: "a caller that comes back does not get what it has missed",
    section: "3.6",
    caughtBy: ["3.6-resume"],
    breach: () => ({
      up: (frame) =>
        frame.type === "space.watch" && Number(frame.seenSeq) > 0 ? { ...frame, ids: ["none:1"], prefixes: [] } : frame,
    }),
  },
  {
    wrong: "stacked commits have to wait for one another",
    section: "3.6",
    caughtBy: ["3.6-stacked"],
    breach: () => ({
      down: (frame) => {
        const { resolvedPendingReads } = (frame.body ?? {}) as { resolvedPendingReads?: unknown[] };
        return (resolvedPendingReads?.length ?? 0) > 3
          ? { ...frame, status: 422, body: { error: "pending_dependency_error", message: "wait", retryable: true } }
          : frame;
      },
    }),
  },
];

const edges: readonly WrongServer[] = [
  {
    wrong: "a signature is not looked at",
    section: "3.7",
    caughtBy: ["3.7-bad-signatures"],
    breach: () =>
      bendRequest((request) => {
        if (!isCommit(request)) return request;
        const { invocation: _invocation, ...commit } = commitOf(request);
        return withBody(request, { ...bodyOf(request), commit });
      }),
  },
  {
    wrong: "the log does not link what was signed",
    section: "3.7",
    caughtBy: ["3.7-signed"],
    breach: () =>
      bendBody(
        ({ path }) => path.endsWith("/log"),
        (body) => ({
          ...body,
          items: (body.items as object[]).map((item) => ({ ...item, invocationRef: null, authorizationRef: null })),
        }),
      ),
  },
  {
    wrong: "any member sets a space's policy",
    section: "3.7",
    caughtBy: ["3.7-required"],
    breach: () =>
      bendAnswer(
        ({ path }, { status }) => path.endsWith("/policy") && status === 403,
        () => answerWith(200, { signedWrites: "required" }),
      ),
  },
  {
    wrong: "fields that a call does not know are passed over",
    section: "3.8",
    caughtBy: ["3.8-unknown-fields"],
    breach: () =>
      bendRequest((request) => {
        const { colour: _colour, ...known } = bodyOf(request);
        return Object.hasOwn(bodyOf(request), "colour") ? withBody(request, known) : request;
      }),
  },
  {
    wrong: "a limit above the largest is cut to it",
    section: "3.8",
    caughtBy: ["3.8-limits"],
    breach: () => bendRequest((request) => ({ ...request, path: request.path.replace("limit=1001", "limit=1000") })),
  },
  {
    wrong: "an unknown session is forbidden",
    section: "3.8",
    caughtBy: ["3.8-unknown-things"],
    breach: () =>
      bendAnswer(
        (_request, answer) => errorOf(answer) === "session_not_found",
        () => refusal(403, "forbidden"),
      ),
  },
  {
    wrong: "lists on the socket lack what they have over HTTP",
    section: "3.8",
    caughtBy: ["3.8-socket"],
    breach: () => ({
      down: (frame) => {
        const { items } = (frame.body ?? {}) as { items?: unknown[] };
        return items === undefined ? frame : { ...frame, body: { items } };
      },
    }),
  },
];

export const wrongSpaces: readonly WrongServer[] = [
  ...retries,
  ...valuesAndSessions,
  ...commits,
  ...history,
  ...watching,
  ...edges,
];

// What brokers answer to commits to the space, as it leaves them: one verdict for each (session, localSeq), for
// ever the same, and nothing for a token that was known to be an old one when the request came.
import { isDeepStrictEqual } from "node:util";
import { Violation } from "./violation.ts";

export type EdgeAnswer = { readonly status: number; readonly body: unknown };

type Given = { readonly payload: string; readonly verdict: object };
type Token = {
  readonly answeredAt: number /** Since when another is known to have taken its place. */;
  oldSince?: number;
};

const verdictCodes: readonly unknown[] = [
  "conflict_error",
  "dependency_rejected_error",
  "send_rejected_error",
  "patch_error",
];
/** What may be answered instead of a verdict that is there. */
const passing: readonly unknown[] = ["session_revoked_error", "session_not_found", "unauthorized", "rate_limited"];

export class SessionWatch {
  readonly #given = new Map<string, Given>();
  /** By session and token. */
  readonly #tokens = new Map<string, Map<string, Token>>();
  #moment = 0;
  readonly tally = { replayed: 0, refusedOld: 0, mismatched: 0 };

  isDecided(sessionId: string, localSeq: number): boolean {
    return this.#given.has(`${sessionId}/${localSeq}`);
  }

  /** Called when an agent opens a session; the result takes the answer. */
  opening(): (answer: EdgeAnswer) => void {
    const askedAt = ++this.#moment;
    return ({ status, body }) => {
      if (status !== 200) return;
      const { sessionId, sessionToken } = body as { readonly sessionId: string; readonly sessionToken: string };
      const tokens = this.#tokens.get(sessionId) ?? new Map<string, Token>();
      this.#tokens.set(sessionId, tokens);
      const known = tokens.get(sessionToken);
      if (known?.oldSince !== undefined && known.oldSince < askedAt)
        throw new Violation("session_stolen", `${sessionId} was given an old token again`);
      if (known !== undefined) return;
      const answeredAt = ++this.#moment;
      for (const token of tokens.values()) if (token.answeredAt < askedAt) token.oldSince ??= answeredAt;
      tokens.set(sessionToken, { answeredAt });
    };
  }

  /** Called when an agent writes under a localSeq. */
  writing(
    writer: { readonly sessionId: string; readonly sessionToken: string; readonly localSeq: number },
    payload: string,
  ): (answer: EdgeAnswer) => void {
    const { sessionId, sessionToken, localSeq } = writer;
    const isOld = this.#tokens.get(sessionId)?.get(sessionToken)?.oldSince !== undefined;
    const key = `${sessionId}/${localSeq}`;
    return (answer) => {
      const verdict = verdictOf(answer);
      if (isOld && verdict !== undefined) {
        throw new Violation("session_stolen", `${key} got a verdict with a token that was taken before it came`);
      }
      if (isOld) this.tally.refusedOld += 1;
      const before = this.#given.get(key);
      if (before !== undefined) this.#compare(key, before, payload, answer, verdict);
      else if (verdict !== undefined) this.#given.set(key, { payload, verdict });
    };
  }

  #compare(key: string, before: Given, payload: string, answer: EdgeAnswer, verdict: object | undefined): void {
    const code = codeOf(answer);
    if (payload !== before.payload) {
      if (verdict !== undefined) throw new Violation("verdict_wrong", `${key} was decided, and so was other content`);
      if (code === "replay_mismatch_error") this.tally.mismatched += 1;
      return;
    }
    if (verdict !== undefined) {
      this.tally.replayed += 1;
      if (isDeepStrictEqual(verdict, before.verdict)) return;
      const [was, is] = [JSON.stringify(before.verdict), JSON.stringify(verdict)];
      throw new Violation("verdict_wrong", `${key} was ${was.slice(0, 150)} and became ${is.slice(0, 150)}`);
    }
    if (answer.status >= 500 || passing.includes(code)) return;
    throw new Violation("verdict_wrong", `${key} had a verdict and was answered with ${String(code)}`);
  }
}

function codeOf({ body }: EdgeAnswer): unknown {
  return (body as { readonly error?: unknown } | undefined)?.error;
}

/** What was decided for good; undefined: nothing was. */
function verdictOf(answer: EdgeAnswer): object | undefined {
  if (answer.status !== 200 && !verdictCodes.includes(codeOf(answer))) return undefined;
  const { replayed: _, ...verdict } = answer.body as Record<string, unknown>;
  return verdict;
}

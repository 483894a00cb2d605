// A server that breaks one rule: ours behind a proxy that bends a single thing. What is wrong with each is in the lists
// beside this file; here is how things are bent.
import { type Breach, bodyOf, type ProxiedAnswer, type ProxiedRequest, withBody } from "./breaching-proxy.ts";

export type WrongServer = {
  readonly wrong: string;
  readonly section: string;
  /** Scenarios that must fail; others of the section may. */
  readonly caughtBy: readonly string[];
  /** Made anew for each run, since some remember. */
  readonly breach: () => Breach;
};

type IsMeant = (request: ProxiedRequest, answer: ProxiedAnswer) => boolean;

export const answerWith = (status: number, body: object): ProxiedAnswer => {
  return { status, headers: { "content-type": "application/json" }, body: Buffer.from(JSON.stringify(body)) };
};
export const refusal = (status: number, error: string, more: object = {}) =>
  answerWith(status, { error, message: "wrong on purpose", retryable: false, ...more });

export const bendAnswer = (
  isMeant: IsMeant,
  bend: (answer: ProxiedAnswer, request: ProxiedRequest) => ProxiedAnswer,
): Breach => ({
  http: async (request, pass) => {
    const answer = await pass(request);
    return isMeant(request, answer) ? bend(answer, request) : answer;
  },
});

export const bendBody = (
  isMeant: IsMeant,
  bend: (body: Record<string, unknown>, request: ProxiedRequest) => object,
): Breach => bendAnswer(isMeant, (answer, request) => withBody(answer, bend(bodyOf(answer), request)));

export const bendRequest = (bend: (request: ProxiedRequest) => ProxiedRequest): Breach => ({
  http: (request, pass) => pass(bend(request)),
});

/** A refusal consumes the id. */
export function consumeRefused(
  isSend: (request: ProxiedRequest) => boolean,
  isRefused: (status: number) => boolean,
): Breach {
  const refused = new Set<unknown>();
  return {
    http: async (request, pass) => {
      const id = bodyOf(request).client_message_id;
      if (isSend(request) && refused.has(id)) return refusal(409, "idempotency_key_reused");
      const answer = await pass(request);
      if (isSend(request) && isRefused(answer.status)) refused.add(id);
      return answer;
    },
  };
}

/** A caller that spends its budget hears of no pause. */
export const hideRetryAfter = (): Breach => ({
  down: (frame) => {
    const { retry_after_s: _retry, ...body } = (frame.body ?? {}) as Record<string, unknown>;
    return frame.status === 429 ? { ...frame, body } : frame;
  },
});

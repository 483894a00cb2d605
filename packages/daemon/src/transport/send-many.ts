// Many sends in one request: each is read, accepted and answered as if it had come alone. What is wrong with one of them is
// said in its own answer; only a request that cannot be read at all is refused whole.
// Why: docs/decisions/0088.
import type { Validator } from "@claudemesh/http/validation";
import { MeshError } from "@claudemesh/protocol/errors";
import { limits } from "@claudemesh/protocol/messages/limits";
import { type IdentifiedSend, sendManyRequestSchema } from "@claudemesh/protocol/messages/send-request";
import { toMeshError } from "../storage-failure.ts";
import type { Answer, OnRefused } from "./route.ts";

const { items: _each, ...list } = sendManyRequestSchema.properties.sends;

/** The list without its items: they are checked one by one, so that a bad one harms no neighbour. */
export const sendListSchema = { ...sendManyRequestSchema, properties: { sends: list } };

/** A send stands two levels deeper than alone, and may be as deep in itself and no deeper. */
export const sendListDepth = limits.jsonDepth + 2;

/** All are begun in one turn and in their order, so that what is written of them shares a transaction and its flush. */
export function answerEach(
  items: readonly unknown[],
  answer: (item: unknown) => Promise<Answer>,
  onRefused: OnRefused,
): Promise<Answer[]> {
  return Promise.all(
    items.map(async (item) => {
      try {
        return await answer(item);
      } catch (error) {
        const refusal = toMeshError(error);
        onRefused(refusal);
        return { status: refusal.status, body: refusal.toBody() };
      }
    }),
  );
}

export function readItem(checkSend: Validator, item: unknown): IdentifiedSend {
  const fault = checkSend(item);
  if (fault !== undefined) throw fault;
  const send = item as IdentifiedSend;
  if (send.client_message_id !== undefined) return send;
  const message =
    "Give each of many sends a client_message_id: if the answer is lost, only the same id is safe to ask with.";
  throw new MeshError("invalid_request", message, { field: "client_message_id" });
}

/** A header cannot name many messages, and a caller that gives one would take it for their identity. */
export function refuseIdempotencyKey(key: string | undefined): void {
  if (key === undefined) return;
  const message = "Idempotency-Key names one message; give each of many sends its own client_message_id.";
  throw new MeshError("invalid_request", message, { field: "Idempotency-Key" });
}

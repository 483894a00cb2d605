// The registrar's operations: approvals, registrations, their fate, compensations, and what was refused.

import type { PlainMember } from "@claudemesh/members/ports";
import { requireOwner } from "@claudemesh/members/require-owner";
import { MeshError } from "@claudemesh/protocol/errors";
import { isUuidV7 } from "@claudemesh/protocol/ids";
import type { Answer } from "@claudemesh/protocol/messages/accept-result";
import type {
  ApprovalInput,
  ApproveInput,
  CompensateInput,
  RegisterInput,
  RegistrarPageInput,
  RequestInput,
} from "@claudemesh/protocol/wire/registrar-operations";
import { approve, revokeApproval } from "@claudemesh/registrar/services/approve";
import { type AuditedRequest, auditRefusals } from "@claudemesh/registrar/services/audit-refusals";
import { approvalBody, auditBody, requestBody } from "@claudemesh/registrar/services/bodies";
import { compensate } from "@claudemesh/registrar/services/compensate";
import { register } from "@claudemesh/registrar/services/register";
import { listAttempts, resolveRequest } from "@claudemesh/registrar/services/resolve-request";
import type { BrokerContext } from "../context.ts";
import type { OpenRegistrar } from "../registrar/broker-registrar.ts";
import { type Handlers, ok, pageLimit } from "./handler.ts";

export const registrarHandlers = {
  "registrar.approve": (broker, { member }, input: ApproveInput) =>
    change(broker, "approve", member, input, async (ports) => {
      const { nowMs } = ports;
      const admit = () => broker.admitNew(member.meshId, `approval/${input.approval_id}`);
      const outcome = await approve({ ...ports, store: ports.store.approvals, admit }, member, input);
      if (outcome.type === "exists") return ok({ ...approvalBody(outcome.approval, nowMs()), duplicate: true });
      const { approval_id, not_after } = outcome.terms;
      return { status: 201, body: { approval_id, authorization_nonce: outcome.authorizationNonce, not_after } };
    }),

  "registrar.approvals": async (broker, { member }, input: RegistrarPageInput) => {
    const { store, nowMs } = broker.registrar.use();
    requireOwner(member, "list approvals");
    const limit = pageLimit(input);
    const approvals = await store.approvals.list(member.meshId, input.after ?? "", limit);
    const items = approvals.map((approval) => approvalBody(approval, nowMs()));
    return page(items, limit, approvals.at(-1)?.terms.approval_id);
  },

  "registrar.revoke": (broker, { member }, input: ApprovalInput) =>
    change(broker, "revoke", member, input, async ({ store, nowMs }) => {
      const approval = await revokeApproval({ store: store.approvals, nowMs }, member, input.approval_id);
      return ok({ ...approvalBody(approval, nowMs()) });
    }),

  "registrar.register": (broker, { member }, input: RegisterInput) =>
    change(broker, "register", member, input, async (ports) => {
      const { duplicate, stored } = await register(ports, member, input);
      return { status: duplicate ? 200 : 201, body: { ...requestBody(stored), duplicate } };
    }),

  "registrar.resolve": async (broker, { member }, input: RequestInput) =>
    ok(await resolveRequest(broker.registrar.use(), member.meshId, input.logical_request_key)),

  "registrar.attempts": async (broker, { member }, input: RequestInput) =>
    ok(await listAttempts(broker.registrar.use(), member.meshId, input.logical_request_key)),

  "registrar.compensate": (broker, { member }, input: CompensateInput) =>
    change(broker, "compensate", member, input, async ({ store, nowMs }) => {
      const { duplicate, stored } = await compensate({ store: store.requests, nowMs }, member, input);
      return { status: duplicate ? 200 : 201, body: { ...requestBody(stored), duplicate } };
    }),

  "registrar.registrations": async (broker, { member }, input: RegistrarPageInput) => {
    const { store } = broker.registrar.use();
    const limit = pageLimit(input);
    const requests = await store.requests.list(member.meshId, cursorOf(input), limit);
    return page(requests.map(requestBody), limit, requests.at(-1)?.registration.registrationId);
  },

  "registrar.audit": async (broker, { member }, input: RegistrarPageInput) => {
    const { store } = broker.registrar.use();
    requireOwner(member, "read the registrar's audit");
    const limit = pageLimit(input);
    const entries = await store.audit.list(member.meshId, cursorOf(input), limit);
    return page(entries.map(auditBody), limit, entries.at(-1)?.auditId);
  },
} satisfies Handlers;

/** A call that may be refused: the refusal is audited, and every end is counted. */
async function change(
  broker: BrokerContext,
  call: string,
  member: PlainMember,
  input: AuditedRequest,
  work: (ports: OpenRegistrar) => Promise<Answer>,
): Promise<Answer> {
  const ports = broker.registrar.use();
  try {
    const audit = { store: ports.store.audit, nowMs: ports.nowMs, nextId: ports.nextId };
    const answer = await auditRefusals(audit, member, input, () => work(ports));
    broker.metrics.registrarAnswered(call, answer.status === 201 ? "new" : "same");
    return answer;
  } catch (error) {
    broker.metrics.registrarAnswered(call, outcomeOf(error));
    throw error;
  }
}

function outcomeOf(error: unknown): string {
  if (!(error instanceof MeshError)) return "failed";
  const { conflict } = error.details;
  return typeof conflict === "string" ? conflict : error.code;
}

function page(items: readonly object[], limit: number, last: string | undefined): Answer {
  return ok({ items, next_cursor: items.length === limit ? (last ?? null) : null });
}

/** Lists in order of time go on behind one of our own ids. */
function cursorOf({ after }: RegistrarPageInput): string {
  if (after === undefined || isUuidV7(after)) return after ?? "";
  throw new MeshError("invalid_request", 'The field "after" is no cursor of this list.', { field: "after" });
}

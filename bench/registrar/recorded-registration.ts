// The statements of one registration, written down while the product makes it: which, in what order, which of them in one
// transaction, and which are sent without waiting for each other. A bare loop then runs exactly these with other values.
import { randomBytes } from "node:crypto";
import { sha256 } from "@claudemesh/members/sha256";
import { createUuidV7Generator } from "@claudemesh/protocol/ids";
import { effectKey, registrarProtocolVersion, replayKey } from "@claudemesh/protocol/registrar/digests";
import type { RegistrarStore } from "@claudemesh/registrar/ports";
import { register } from "@claudemesh/registrar/services/register";
import { approveAll, ownerOf, type RegistrarMesh, registrarPorts } from "./bench-registration.ts";
import { benchEffect, type RegistrationIds } from "./bench-request.ts";

export type RecordedStatement = {
  readonly text: string;
  readonly name: string | undefined;
  readonly reads: boolean;
  /** The driver makes lists of its rows. */
  readonly asLists?: boolean;
  readonly values: readonly unknown[];
};

/** Statements of one group are sent together. */
export type RecordedStep = {
  readonly inTransaction: boolean;
  readonly groups: readonly (readonly RecordedStatement[])[];
};

/** Every value that differs from one registration to the next. */
export type RegistrationValues = RegistrationIds & {
  readonly registrationId: string;
  readonly replayKey: Uint8Array;
  readonly effectKey: Uint8Array;
};

export class RegistrationRecorder {
  readonly #steps: { inTransaction: boolean; groups: RecordedStatement[][] }[] = [];
  #recording = false;
  #inTransaction = false;
  #unanswered = 0;

  /** Around a transaction, or around nothing: a read of its own is a step. */
  begin(inTransaction: boolean): void {
    this.#inTransaction = inTransaction;
    if (this.#recording) this.#steps.push({ inTransaction, groups: [] });
  }

  end(): void {
    this.#inTransaction = false;
  }

  sent(statement: RecordedStatement): void {
    this.#unanswered += 1;
    if (!this.#recording) return;
    if (!this.#inTransaction) this.begin(false);
    const step = this.#steps.at(-1);
    if (step === undefined) throw new Error("a statement belongs to a step");
    if (this.#unanswered === 1 || step.groups.length === 0) step.groups.push([]);
    step.groups.at(-1)?.push(statement);
  }

  answered(): void {
    this.#unanswered -= 1;
  }

  /** Makes one registration through `store`, which tells this recorder what it does. */
  async record(store: RegistrarStore, mesh: RegistrarMesh): Promise<{ steps: RecordedStep[]; bind: Bind }> {
    const ids = { key: "probe-key", runId: "probe-run", approvalId: "probe-approval", attemptId: "probe-attempt" };
    const ports = registrarPorts(store);
    const [request] = await approveAll({ store, isSignedBy: ports.isSignedBy }, mesh, [ids]);
    if (request === undefined) throw new Error("one approval was asked for");
    this.#recording = true;
    const { stored } = await register(ports, ownerOf(mesh), request);
    this.#recording = false;
    const { registrationId } = stored.registration;
    const { replayKey: replay, effectKey: effect } = stored.consumption;
    return { steps: this.#steps, bind: createBind({ ...ids, registrationId, replayKey: replay, effectKey: effect }) };
  }
}

/** The values of a recorded statement, for another registration. */
export type Bind = (statement: RecordedStatement) => (row: RegistrationValues) => unknown[];

function createBind(probe: RegistrationValues): Bind {
  const fields = Object.keys(probe) as (keyof RegistrationValues)[];
  const isSame = (a: unknown, b: unknown) =>
    a instanceof Uint8Array && b instanceof Uint8Array ? Buffer.compare(a, b) === 0 : a === b;
  return ({ values }) => {
    const sources = values.map((value) => fields.find((field) => isSame(probe[field], value)));
    return (row) => values.map((value, at) => (sources[at] === undefined ? value : row[sources[at]]));
  };
}

const nextRegistrationId = createUuidV7Generator({ nowMs: Date.now, randomBytes });

/** Worked out before the clock runs, as the bare loop has nothing but its statements. */
export function valuesOf(ids: RegistrationIds, binding: string): RegistrationValues {
  const { operation, target, artifact_hash: artifactHash } = benchEffect;
  const effect = { operation, target, artifactHash, runId: ids.runId };
  const identity = { ...effect, protocolVersion: registrarProtocolVersion, logicalRequestKey: ids.key, binding };
  return {
    ...ids,
    registrationId: nextRegistrationId(),
    replayKey: replayKey(sha256, identity),
    effectKey: effectKey(sha256, effect),
  };
}

// A mesh with owners and members on one store, and the registrar's services over it, for the suites that both stores
// run. Time stands still unless a test moves it; several brokers are several openings of the same database.
import { generateKeyPairSync, hash, randomBytes, sign } from "node:crypto";
import type { Member, Role } from "@claudemesh/members/ports";
import { MeshError } from "@claudemesh/protocol/errors";
import { createUuidV7Generator } from "@claudemesh/protocol/ids";
import { type ApprovalTerms, approvalBytes } from "@claudemesh/protocol/registrar/approval";
import type { RegistrationState } from "@claudemesh/protocol/registrar/registration-state";
import type { ApproveInput, RegisterInput } from "@claudemesh/protocol/wire/registrar-operations";
import type { CommitHooks } from "@claudemesh/storage/commit-hooks";
import type { RuleStore } from "@claudemesh/storage/row-rules";
import { stateOf } from "../../core/stored-state.ts";
import type { RegistrarStore } from "../../ports.ts";
import { approve, revokeApproval } from "../../services/approve.ts";
import { auditRefusals } from "../../services/audit-refusals.ts";
import { requestBody } from "../../services/bodies.ts";
import { compensate } from "../../services/compensate.ts";
import { finishVerifications } from "../../services/finish-verifications.ts";
import { register } from "../../services/register.ts";
import { resolveRequest } from "../../services/resolve-request.ts";
import { RetryCounter } from "../../services/retry-counter.ts";
import { createSignatureCheck } from "../../services/signature-check.ts";
import type { Verifier } from "../../services/verify-registration.ts";

export type Row = Readonly<Record<string, unknown>>;

/** Where a test may let a phase 1 die: the promise of that request rejects, and the process's memory is gone. */
export class CrashPoints implements CommitHooks<void> {
  beforeCommit: (() => void) | undefined;
  afterCommit: (() => void) | undefined;

  before(): void {
    this.beforeCommit?.();
  }

  after(): void {
    this.afterCommit?.();
  }
}

export type OpenedRegistrar = {
  readonly store: RegistrarStore;
  readonly crash: CrashPoints;
  readonly close: () => Promise<void>;
};

export type RegistrarHarness = {
  readonly kind: "sqlite" | "postgres";
  /** Another broker on the same database. */
  readonly open: () => Promise<OpenedRegistrar>;
  /** As another program would: past the registrar, on the tables. */
  readonly query: (sql: string) => Promise<Row[]>;
  /** Without the triggers, as an operator of the database could. */
  readonly queryUnguarded: (sql: string) => Promise<void>;
  readonly rules: RuleStore;
  readonly table: (name: string) => string;
};

/** An answer of the API: status and body, refused or not. */
export type Answered = { readonly status: number; readonly body: Readonly<Record<string, unknown>> };

export type Person = Member & { readonly sign: (bytes: Uint8Array) => string };

/** What a test says of a request; the rest is as in every other. */
export type Asked = Partial<RegisterInput> & { readonly by?: Person; readonly on?: Broker };

export type Granted = { readonly approval_id: string; readonly authorization_nonce: string };

export const artifact = (content: string) => hash("sha256", content, "hex");

export class RegistrarWorld {
  readonly harness: RegistrarHarness;
  readonly meshId: string;
  readonly broker: Broker;
  readonly owner: Person;
  readonly member: Person;
  nowMs = 1_700_000_000_000;
  readonly #brokers: Broker[] = [];
  #ids = 0;

  private constructor(harness: RegistrarHarness, meshId: string, broker: (world: RegistrarWorld) => Broker) {
    this.harness = harness;
    this.meshId = meshId;
    this.broker = broker(this);
    this.#brokers.push(this.broker);
    this.owner = this.#person("owner");
    this.member = this.#person("member");
  }

  static async start(harness: RegistrarHarness): Promise<RegistrarWorld> {
    const meshId = createUuidV7Generator({ nowMs: Date.now, randomBytes })();
    const opened = await harness.open();
    const world = new RegistrarWorld(harness, meshId, (self) => new Broker(self, opened));
    await harness.query(
      `INSERT INTO ${world.table("mesh")} (id, name, created_at) VALUES ('${meshId}', '${meshId}', ${world.sqlTime})`,
    );
    await world.#join(world.owner);
    await world.#join(world.member);
    return world;
  }

  async addBroker(): Promise<Broker> {
    const broker = new Broker(this, await this.harness.open());
    this.#brokers.push(broker);
    return broker;
  }

  async addPerson(role: Role): Promise<Person> {
    const person = this.#person(role);
    await this.#join(person);
    return person;
  }

  async close(): Promise<void> {
    for (const broker of this.#brokers) await broker.close();
  }

  get sqlTime(): string {
    return this.harness.kind === "sqlite" ? "1" : "now()";
  }

  table(name: string): string {
    return this.harness.table(name);
  }

  /** A word that no other call has given. */
  fresh(word: string): string {
    return `${word}-${++this.#ids}`;
  }

  #person(role: Role): Person {
    const { publicKey, privateKey } = generateKeyPairSync("ed25519");
    const pubkey = publicKey.export({ format: "der", type: "spki" }).subarray(-32).toString("hex");
    const member = { meshId: this.meshId, pubkey, name: role, role, joinedAt: 1, revoked: false };
    return { ...member, sign: (bytes) => sign(null, bytes, privateKey).toString("hex") };
  }

  async #join({ pubkey, name, role }: Person): Promise<void> {
    await this.harness.query(`INSERT INTO ${this.table("member")} (mesh_id, pubkey, name, role, joined_at)
      VALUES ('${this.meshId}', '${pubkey}', '${name}', '${role}', ${this.sqlTime})`);
  }

  async revokeMember({ pubkey }: Person): Promise<void> {
    await this.harness.query(`UPDATE ${this.table("member")} SET revoked_at = ${this.sqlTime}
      WHERE mesh_id = '${this.meshId}' AND pubkey = '${pubkey}'`);
  }

  /** The terms of an approval for `asked`, good for an hour from now. */
  terms(asked: Partial<ApprovalTerms> = {}): ApprovalTerms {
    return {
      approval_id: this.fresh("approval"),
      operation: "release",
      target: "prod",
      artifact_hash: artifact("v1"),
      run_id: "run-1",
      purpose: "register",
      not_before: this.nowMs,
      not_after: this.nowMs + 3_600_000,
      ...asked,
    };
  }

  signed(terms: ApprovalTerms, by: Person = this.owner): ApproveInput {
    return { ...terms, signature: by.sign(approvalBytes(this.meshId, terms)) };
  }

  async grant(asked: Partial<ApprovalTerms> = {}, by: Person = this.owner): Promise<Granted> {
    const { status, body } = await this.broker.approve(this.signed(this.terms(asked), by), by);
    if (status !== 201) throw new Error(`the approval was refused: ${JSON.stringify(body)}`);
    return { approval_id: String(body.approval_id), authorization_nonce: String(body.authorization_nonce) };
  }

  /** One request, with an approval of its own where none is given. */
  async ask(asked: Asked = {}): Promise<Answered> {
    const { by = this.member, on = this.broker, ...input } = asked;
    return on.register(await this.request(input), by);
  }

  async request(asked: Partial<RegisterInput> = {}): Promise<RegisterInput> {
    const effect = {
      operation: "release",
      target: "prod",
      artifact_hash: artifact("v1"),
      run_id: "run-1",
      ...pick(asked, ["operation", "target", "artifact_hash", "run_id"]),
    };
    const granted = asked.approval_id === undefined ? await this.grant(effect) : { authorization_nonce: "none" };
    return {
      protocol_version: "1",
      logical_request_key: "key-1",
      attempt_id: this.fresh("attempt"),
      approval_id: "",
      ...effect,
      ...granted,
      ...asked,
    };
  }

  async count(table: string, where = "1 = 1"): Promise<number> {
    const sql = `SELECT count(*) AS n FROM ${this.table(table)} WHERE mesh_id = '${this.meshId}' AND ${where}`;
    const [row] = await this.harness.query(sql);
    return Number(row?.n);
  }

  /** One effect, at most: what every test may ask at any time. */
  async effects(): Promise<{ consumed: number; registered: number; verified: number; compensated: number }> {
    return {
      consumed: await this.count("registrar_consume"),
      registered: await this.count("registrar_registration"),
      verified: await this.count("registrar_verification"),
      compensated: await this.count("registrar_compensation"),
    };
  }
}

/** One broker's registrar. */
export class Broker {
  readonly crash: CrashPoints;
  readonly store: RegistrarStore;
  verifier: Verifier | undefined;
  readonly #world: RegistrarWorld;
  readonly #close: () => Promise<void>;
  readonly #nextId: () => string;
  readonly #isSignedBy = createSignatureCheck();
  readonly retries: RetryCounter;

  constructor(world: RegistrarWorld, { store, crash, close }: OpenedRegistrar) {
    this.#world = world;
    this.store = store;
    this.crash = crash;
    this.#close = close;
    this.#nextId = createUuidV7Generator({ nowMs: () => world.nowMs, randomBytes });
    this.retries = new RetryCounter({
      store: store.attempts,
      // A broker that a test has killed may still try to write its counts; they decide nothing.
      onFailure: () => undefined,
    });
  }

  #ports(store: RegistrarStore = this.store) {
    return {
      store,
      nowMs: () => this.#world.nowMs,
      nextId: this.#nextId,
      verifier: this.verifier,
      retries: this.retries,
      isSignedBy: this.#isSignedBy,
      onVerified: () => undefined,
      onUnfinished: () => undefined,
    };
  }

  register(input: RegisterInput, by: Person): Promise<Answered> {
    return this.#audited(by, input, async () => {
      const { duplicate, stored } = await register(this.#ports(), by, input);
      return { status: duplicate ? 200 : 201, body: { ...requestBody(stored), duplicate } };
    });
  }

  /** Runs `meanwhile` after the key was looked up and before the transaction begins. */
  registerWith(input: RegisterInput, by: Person, meanwhile: () => Promise<void>): Promise<Answered> {
    const { requests } = this.store;
    const consume: typeof requests.consume = async (request, nowMs) => {
      await meanwhile();
      return requests.consume(request, nowMs);
    };
    const ports = this.#ports({ ...this.store, requests: { ...requests, consume } });
    return this.#audited(by, input, async () => {
      const { duplicate, stored } = await register(ports, by, input);
      return { status: duplicate ? 200 : 201, body: { ...requestBody(stored), duplicate } };
    });
  }

  approve(input: ApproveInput, by: Person): Promise<Answered> {
    return this.#audited(by, input, async () => {
      const ports = { ...this.#ports(), store: this.store.approvals, admit: async () => undefined };
      const approved = await approve(ports, by, input);
      if (approved.type === "exists") return { status: 200, body: { ...approved.approval.terms } };
      const { authorizationNonce, terms } = approved;
      return { status: 201, body: { approval_id: terms.approval_id, authorization_nonce: authorizationNonce } };
    });
  }

  async revoke(approvalId: string, by: Person = this.#world.owner): Promise<void> {
    await revokeApproval({ store: this.store.approvals, nowMs: () => this.#world.nowMs }, by, approvalId);
  }

  compensate(key: string, granted: Granted, by: Person = this.#world.owner): Promise<Answered> {
    const input = { logical_request_key: key, attempt_id: this.#world.fresh("attempt"), ...granted };
    return this.#audited(by, input, async () => {
      const ports = { store: this.store.requests, nowMs: () => this.#world.nowMs };
      const { duplicate, stored } = await compensate(ports, by, input);
      return { status: duplicate ? 200 : 201, body: { ...requestBody(stored), duplicate } };
    });
  }

  resolve(key: string): Promise<Record<string, unknown>> {
    return resolveRequest(this.#ports(), this.#world.meshId, key);
  }

  async state(key: string): Promise<RegistrationState> {
    return stateOf(await this.store.requests.find(this.#world.meshId, key));
  }

  async finish(): Promise<number> {
    return (await finishVerifications(this.#ports(), "all")).finished;
  }

  async close(): Promise<void> {
    await this.retries.flush();
    await this.#close();
  }

  async #audited(by: Person, input: object, work: () => Promise<Answered>): Promise<Answered> {
    try {
      const ports = { store: this.store.audit, nowMs: () => this.#world.nowMs, nextId: this.#nextId };
      return await auditRefusals(ports, by, input, work);
    } catch (error) {
      if (error instanceof MeshError) return { status: error.status, body: error.toBody() };
      throw error;
    }
  }
}

function pick<T extends object, K extends keyof T>(from: T, names: readonly K[]): Partial<Pick<T, K>> {
  const chosen: Partial<Pick<T, K>> = {};
  for (const name of names) if (from[name] !== undefined) chosen[name] = from[name];
  return chosen;
}

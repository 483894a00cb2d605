// Approvals and registrations as owner and agents make them: exact retries, collisions, misuse of keys and nonces, and
// compensation of what did not pass. Approvals travel from the owner to the agents outside of the mesh.
import { createHash } from "node:crypto";
import type { Authorization, RegisterRequest } from "@claudemesh/client/registrar";
import type { AgentOperation } from "../core/agent-operations.ts";
import { dayMs } from "../core/plan.ts";
import type { MeshWatch } from "../oracles/mesh-watch.ts";
import type { AgentEnd } from "../world/agent.ts";
import type { World } from "../world/world.ts";
import { codeOf } from "./error-code.ts";

type Of<Kind extends AgentOperation["kind"]> = Extract<AgentOperation, { kind: Kind }>;
type Effect = Pick<RegisterRequest, "operation" | "target" | "artifact_hash" | "run_id">;

const recent = 30;

export class RegistrarWork {
  readonly #world: World;
  readonly #watch: MeshWatch;
  /** What was asked for, by any agent. */
  readonly #asked: RegisterRequest[] = [];

  constructor(world: World, watch: MeshWatch) {
    this.#world = world;
    this.#watch = watch;
  }

  async register({ agent, number, passes }: Of<"register">): Promise<AgentEnd<string>> {
    const effect = effectOf(number, passes);
    const approved = await this.#approve(effect);
    if (approved.type !== "value") return approved;
    const request = this.#note({ ...effect, ...approved.value, logical_request_key: `key-${number}` });
    return this.#ask(agent, request);
  }

  async registerAgain({ agent, pick, freshApproval }: Of<"register_again">): Promise<AgentEnd<string>> {
    const request = this.#pick(pick);
    if (request === undefined) return nothing;
    const approved = freshApproval ? await this.#approve(request) : undefined;
    if (approved !== undefined && approved.type !== "value") return approved;
    return this.#ask(agent, { ...request, ...approved?.value });
  }

  /** All agents at once: for the same request, for the same effect, or with the same nonce. */
  async collide({ number, how }: Of<"collide">): Promise<AgentEnd<string>> {
    const effect = effectOf(number, true);
    const approvals = [await this.#approve(effect), await this.#approve(effect)];
    const [first, second] = approvals;
    if (first?.type !== "value" || second?.type !== "value") return nothing;
    const ends = await Promise.all(
      this.#world.agents.map((_, agent) => {
        const logical_request_key = how === "same_request" ? `key-${number}` : `key-${number}-${agent}`;
        const authorization = how === "same_effect" && agent % 2 === 1 ? second.value : first.value;
        return this.#ask(agent, this.#note({ ...effect, ...authorization, logical_request_key }));
      }),
    );
    const words = ends.map((end) => (end.type === "value" ? end.value : end.type === "error" ? codeOf(end.error) : ""));
    return { type: "value", value: words.includes("registered") ? `${how} registered` : how };
  }

  async misuse({ agent, number, pick, how }: Of<"misuse">): Promise<AgentEnd<string>> {
    const earlier = this.#pick(pick);
    if (earlier === undefined) return nothing;
    const isNewEffect = how === "other_effect" || how === "revoked" || how === "expired" || how === "wrong_nonce";
    const effect = isNewEffect ? effectOf(number, true) : effectIn(earlier);
    const approved = await this.#approve(effect);
    if (approved.type !== "value") return approved;
    const authorization = how === "spent_nonce" ? earlier : approved.value;
    const request: RegisterRequest = {
      ...effect,
      approval_id: authorization.approval_id,
      authorization_nonce: how === "wrong_nonce" ? "guess" : authorization.authorization_nonce,
      logical_request_key: how === "other_effect" ? earlier.logical_request_key : `misused-${number}`,
      ...(how === "expired" && { expires_at: this.#world.broker.host.wallMs() - 3 * dayMs }),
    };
    if (how === "revoked") {
      const revoked = await this.#owner.ask(({ registrar }) => registrar.revoke(approved.value.approval_id));
      if (revoked.type !== "value") return nothing;
    }
    const end = await this.#ask(agent, request);
    return end.type === "value" ? { type: "value", value: `${how} ${end.value}` } : end;
  }

  async compensate({ pick, twice }: Of<"compensate">): Promise<AgentEnd<string>> {
    const { registrar: ledger } = this.#watch;
    const failed = ledger.consumedKeys.filter((key) => ledger.stateOf(key) === "verify_failed");
    const keys = failed.length > 0 && pick % 4 > 0 ? failed : ledger.consumedKeys.slice(-recent);
    const key = keys[pick % Math.max(keys.length, 1)];
    const request = this.#asked.findLast((each) => each.logical_request_key === key);
    if (key === undefined || request === undefined) return nothing;
    const approved = await this.#approve(request, key);
    if (approved.type !== "value") return approved;
    const compensate = () => this.#owner.ask(({ registrar }) => registrar.compensate(key, approved.value));
    const first = await compensate();
    const end = twice ? await compensate() : first;
    if (end.type !== "value") return end;
    return { type: "value", value: end.value.duplicate ? "compensated before" : "compensated" };
  }

  async status({ agent, pick }: Of<"status">): Promise<AgentEnd<string>> {
    const request = this.#pick(pick);
    if (request === undefined) return nothing;
    return this.#world.agentAt(agent).ask(async ({ registrar }) => {
      return (await registrar.status(request.logical_request_key)).state;
    });
  }

  get #owner() {
    return this.#world.agentAt(0);
  }

  #note(request: RegisterRequest): RegisterRequest {
    this.#asked.push(request);
    return request;
  }

  #pick(pick: number): RegisterRequest | undefined {
    const asked = this.#asked.slice(-recent);
    return asked[pick % Math.max(asked.length, 1)];
  }

  /** Good for a long time, since clocks here are not what they should be. */
  #approve(effect: Effect, key?: string): Promise<AgentEnd<Authorization>> {
    const nowMs = this.#world.broker.host.wallMs();
    const terms = { ...effectIn(effect), not_before: nowMs - 30 * dayMs, not_after: nowMs + 60 * dayMs };
    return this.#owner.ask(async ({ registrar }) => {
      const purpose =
        key === undefined ? ({} as const) : ({ purpose: "compensate", logical_request_key: key } as const);
      const { approval_id, authorization_nonce = "" } = await registrar.approve({ ...terms, ...purpose });
      return { approval_id, authorization_nonce };
    });
  }

  #ask(agent: number, request: RegisterRequest): Promise<AgentEnd<string>> {
    return this.#world.agentAt(agent).ask(async ({ registrar }) => {
      const { duplicate } = await registrar.register(request);
      return duplicate ? "registered before" : "registered";
    });
  }
}

const nothing: AgentEnd<string> = { type: "value", value: "nothing" };

function effectOf(number: number, passes: boolean): Effect {
  const artifact_hash = createHash("sha256").update(`artifact ${number}`).digest("hex");
  return { operation: "release", target: "prod", artifact_hash, run_id: `run-${number}${passes ? "" : "-bad"}` };
}

function effectIn({ operation, target, artifact_hash, run_id }: Effect): Effect {
  return { operation, target, artifact_hash, run_id };
}

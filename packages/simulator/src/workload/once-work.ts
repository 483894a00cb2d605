// Effects that must happen once, run by agents that think, die, decline or fail on the way, and people who find out what
// happened where that is uncertain.
import type { OnceContext } from "@claudemesh/client/once";
import { OnceNotDone } from "@claudemesh/client/once";
import type { AgentOperation } from "../core/agent-operations.ts";
import type { MeshWatch } from "../oracles/mesh-watch.ts";
import type { AgentEnd, AgentProcess } from "../world/agent.ts";
import { crash } from "../world/faults.ts";
import type { World } from "../world/world.ts";

type Of<Kind extends AgentOperation["kind"]> = Extract<AgentOperation, { kind: Kind }>;

/** Shorter than the calm at the end of a round. */
const recordForMs = 240_000;
const waitForMs = 300_000;

class EffectFailed extends Error {}

export class OnceWork {
  readonly #world: World;
  readonly #watch: MeshWatch;

  constructor(world: World, watch: MeshWatch) {
    this.#world = world;
    this.#watch = watch;
  }

  run(operation: Of<"once">): Promise<AgentEnd<string>> {
    const { number, leaseSeconds, waits } = operation;
    const key = `once-${operation.key}`;
    const inputs = operation.otherInputs ? ["other", number] : ["usual"];
    return this.#world.agentAt(operation.agent).ask(async (process) => {
      const patience = new AbortController();
      process.life.setTimer(waitForMs, () => patience.abort());
      const options = { leaseSeconds, wait: waits, recordForMs, signal: patience.signal };
      const effect = (at: OnceContext) => this.#effect(process, operation, at);
      try {
        const { result, ran } = await process.once.run(key, inputs, effect, options);
        this.#watch.once.checkResult(key, result);
        return ran ? "ran" : "was done";
      } catch (error) {
        if (error instanceof OnceNotDone) return "declined";
        if (error === patience.signal.reason) return "gave up";
        throw error;
      }
    });
  }

  async #effect(
    process: AgentProcess,
    { agent, number, thinkMs, fate, downMs }: Of<"once">,
    at: OnceContext,
  ): Promise<{ by: number }> {
    const actor = this.#world.agentAt(agent);
    await process.sleep(thinkMs, at.signal);
    if (fate === "dies_before") crash(this.#world, actor, downMs);
    if (fate === "declines") throw new OnceNotDone("changed its mind");
    if (fate === "fails" || at.signal.aborted || !process.life.alive) throw new EffectFailed();
    if (!this.#watch.once.outside.perform(at.key, at.epoch)) throw new EffectFailed();
    if (fate === "dies_after") crash(this.#world, actor, downMs);
    return { by: number };
  }

  /** Looks outside whether it happened; what has not happened is kept from happening before that is said. */
  resolve({ agent, pick }: Of<"resolve">): Promise<AgentEnd<string>> {
    const { once } = this.#watch;
    const unsettled = once.keys.filter((key) => once.newestOf(key)?.settlement === undefined);
    const key = unsettled[pick % Math.max(unsettled.length, 1)];
    return this.#world.agentAt(agent).ask(async ({ call }) => {
      if (key === undefined) return "nothing";
      const { state, epoch } = (await call("once.get", { key })) as { state: string; epoch: number };
      if (state !== "uncertain") return state;
      const isFree = once.outside.fence(key, epoch);
      const said = isFree ? { outcome: "not_done" } : { outcome: "done", result: { by: "somebody" } };
      await call("once.resolve", { key, epoch, ...said });
      return String(said.outcome);
    });
  }
}

// Does what a plan asks of agents, and says how it ended in a word. The work itself is in space-work.ts,
// registrar-work.ts and once-work.ts.
import type { AgentOperation } from "../core/agent-operations.ts";
import type { Answers } from "../oracles/answers.ts";
import type { MeshWatch } from "../oracles/mesh-watch.ts";
import { Violation } from "../oracles/violation.ts";
import type { AgentEnd } from "../world/agent.ts";
import type { World } from "../world/world.ts";
import { codeOf } from "./error-code.ts";
import { OnceWork } from "./once-work.ts";
import { RegistrarWork } from "./registrar-work.ts";
import { SpaceWork } from "./space-work.ts";

export class AgentWork {
  readonly #spaces: SpaceWork;
  readonly #registrar: RegistrarWork;
  readonly #once: OnceWork;

  constructor(world: World, watch: MeshWatch, answers: Answers) {
    this.#spaces = new SpaceWork(world, watch, answers);
    this.#registrar = new RegistrarWork(world, watch);
    this.#once = new OnceWork(world, watch);
  }

  async perform(operation: AgentOperation): Promise<string> {
    return wordOf(await this.#do(operation));
  }

  #do(operation: AgentOperation): Promise<AgentEnd<string>> {
    switch (operation.kind) {
      case "transact":
        return this.#spaces.transact(operation);
      case "branch":
        return this.#spaces.branch(operation);
      case "merge":
        return this.#spaces.merge(operation);
      case "takeover":
        return this.#spaces.takeOver(operation);
      case "replay":
        return this.#spaces.replay(operation);
      case "read_past":
        return this.#spaces.readPast(operation);
      case "register":
        return this.#registrar.register(operation);
      case "register_again":
        return this.#registrar.registerAgain(operation);
      case "collide":
        return this.#registrar.collide(operation);
      case "misuse":
        return this.#registrar.misuse(operation);
      case "compensate":
        return this.#registrar.compensate(operation);
      case "status":
        return this.#registrar.status(operation);
      case "once":
        return this.#once.run(operation);
      case "resolve":
        return this.#once.resolve(operation);
    }
  }
}

function wordOf(end: AgentEnd<string>): string {
  if (end.type === "value") return end.value;
  if (end.type !== "error") return end.type;
  const { error } = end;
  if (error instanceof Violation) throw error;
  return codeOf(error);
}

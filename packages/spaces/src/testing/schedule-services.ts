// The services of a schedule: several over one store that survives them, each of which fails where the schedule says so.
import type { CommitHooks } from "@claudemesh/storage/commit-hooks";
import { StorageError } from "@claudemesh/storage/errors";
import { prepareSends } from "../../../../tests/support/prepared-sends.ts";
import type { SpacePorts, SpacesStore } from "../ports.ts";
import { SessionTurns } from "../services/session-turns.ts";
import type { Fault, ScheduleHost } from "./schedule.ts";

export abstract class ScheduleServices implements ScheduleHost {
  #services: readonly SpacePorts[] = [];
  #turn = 0;
  #fault: Fault | undefined;
  #ids = 0;

  /** Another one over the same rows. */
  protected abstract createStore(hooks: CommitHooks<void>): SpacesStore;

  async restart(): Promise<void> {
    const hit = (when: Fault) => () => {
      if (this.#fault !== when) return;
      this.#fault = undefined;
      throw new StorageError("io", `planned failure ${when} the commit`);
    };
    this.#services = ["first", "second"].map(() => {
      const store = this.createStore({ before: hit("before"), after: hit("after") });
      return schedulePorts(store, () => `session-${String(++this.#ids).padStart(8, "0")}`);
    });
  }

  /** A service has several turns or many before the other one has one, so that its cache is used and overtaken. */
  ports(): SpacePorts {
    const turn = this.#turn++;
    const hasManyTurns = turn % 56 < 28;
    const ports = this.#services[hasManyTurns || turn % 7 < 5 ? 0 : 1];
    if (ports === undefined) throw new Error("the services have not been started");
    return ports;
  }

  failNext(when: Fault | undefined): void {
    this.#fault = when;
  }
}

/** What a service needs besides its store, where nothing listens and the clock stands. */
export function schedulePorts(store: SpacesStore, nextId: () => string): SpacePorts {
  return {
    store,
    sends: { prepare: async (sender, sends) => prepareSends(sender, sends), onAccepted: () => undefined },
    turns: new SessionTurns(),
    nowMs: () => 1_700_000_000_000,
    nextId,
    randomBytes: (length) => new Uint8Array(length).fill(7),
    onCommitted: () => undefined,
    onSessionTaken: () => undefined,
  };
}

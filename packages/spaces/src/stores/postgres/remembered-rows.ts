// The rows of a space that change without a seq, as this store's last transaction left them: what a commit may be decided on
// before anything is asked. Nobody believes it: the statement that writes what was decided holds it against the rows (SPC-18).
// Why: docs/decisions/0070.
import type { SessionRow, SpaceRow } from "../../ports/rows.ts";
import type { Guard } from "./guarded-rows.ts";
import type { LeftRows } from "./shared-transaction.ts";

const sessionsMax = 256;

export class RememberedRows {
  #space: SpaceRow | undefined;
  /** The one that wrote last stands last. */
  readonly #sessions = new Map<string, SessionRow>();

  /** Nobody else has committed of late, as far as is known here. */
  get isQuiet(): boolean {
    return this.#space !== undefined;
  }

  /** Undefined: not worth deciding on. */
  guard(sessionId: string): Guard | undefined {
    const session = this.#sessions.get(sessionId);
    return this.#space && session && { space: this.#space, session };
  }

  /**
   * After COMMIT; `rememberedSeq` is undefined where nothing was. Where somebody else committed since, others are at work
   * here: to decide on what is remembered would most often be in vain until a transaction finds the space as it was left.
   */
  keep({ foundSeq, space, sessions }: LeftRows, rememberedSeq: number | undefined): void {
    this.#space = foundSeq === (rememberedSeq ?? foundSeq) ? space : undefined;
    for (const session of sessions) {
      this.#sessions.delete(session.sessionId);
      this.#sessions.set(session.sessionId, session);
    }
    for (const oldest of this.#sessions.keys()) {
      if (this.#sessions.size <= sessionsMax) break;
      this.#sessions.delete(oldest);
    }
  }
}

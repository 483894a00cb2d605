// Seals the direct messages of transactions. A transaction's function is synchronous and most send no message, so the
// keys are loaded when the first one does, and the function runs again.
import { loadSealing, type SealingIdentity, type SealSend } from "../../seal/outgoing.ts";

export class Sealing {
  readonly #identity: SealingIdentity;
  #seal: SealSend | undefined;

  constructor(identity: SealingIdentity) {
    this.#identity = identity;
  }

  /** Undefined until it is loaded. */
  get seal(): SealSend | undefined {
    return this.#seal;
  }

  async load(): Promise<void> {
    this.#seal ??= await loadSealing(this.#identity);
  }
}

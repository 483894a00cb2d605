// What was taken is given back in the opposite order, all of it, even where one step fails.

export class ReleaseStack {
  readonly #steps: (() => void | Promise<void>)[] = [];
  onError: (error: unknown) => void = () => undefined;

  push(step: () => void | Promise<void>): void {
    this.#steps.push(step);
  }

  /** Never rejects; a second call finds nothing left to do. */
  async releaseAll(): Promise<void> {
    for (let step = this.#steps.pop(); step !== undefined; step = this.#steps.pop()) {
      try {
        await step();
      } catch (error) {
        this.onError(error);
      }
    }
  }
}

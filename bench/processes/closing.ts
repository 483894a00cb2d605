// What has to be ended or removed again, whatever happens: processes and folders, last opened first. Closing one of
// them early takes it off the list.

export class Closing {
  readonly #actions = new Set<() => unknown>();

  /** Returns a function that runs the action once: when its owner calls it, or `closeAll` where that comes first. */
  add(action: () => unknown): () => Promise<void> {
    const once = async (): Promise<void> => {
      if (this.#actions.delete(once)) await action();
    };
    this.#actions.add(once);
    return once;
  }

  async closeAll(): Promise<void> {
    for (const action of [...this.#actions].reverse()) await action();
  }
}

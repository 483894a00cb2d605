// What has to be ended or removed again, whatever happens: processes and folders, last opened first. Closing one of
// them early takes it off the list.

export class Closing {
  readonly #actions = new Set<() => unknown>();

  /** Returns the action as something to be called once, by its owner or by `closeAll`, whoever is first. */
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

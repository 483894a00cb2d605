// Where it is kept how many bytes a mesh has written in a window, for all brokers on one store and across restarts.
// Why: docs/decisions/0118.

export type ByteLedger = {
  /**
   * Adds to what the mesh has spent in the window, and resolves with the sum, that of other brokers included. Rejects where
   * it cannot be asked; whether the bytes were added is then not known.
   */
  readonly add: (meshId: string, windowStartMs: number, windowSeconds: number, bytes: number) => Promise<number>;
};

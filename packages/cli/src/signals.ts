// Waiting in the foreground until the user or a service manager asks it to stop, and ending in time then.

/** From the signal to the end of the process, at the very most. */
const stopMsMax = 9_500;

/** Resolves at the first SIGINT or SIGTERM. A second one ends the process at once: nothing durable depends on us. */
export function stopSignal(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let asked = false;
    const onSignal = (signal: NodeJS.Signals) => {
      if (asked) process.exit(130);
      asked = true;
      resolve(signal);
    };
    process.on("SIGINT", onSignal);
    process.on("SIGTERM", onSignal);
  });
}

/**
 * To be called when the stop begins. A store or a peer that hangs must not keep the process: what was answered is on its
 * disk, and nothing else was promised.
 */
export function boundStop(): void {
  setTimeout(() => process.exit(), stopMsMax).unref();
}

// Waiting in the foreground until somebody asks to stop.

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

// Makes this broker one of several: its connections speak and listen on the common channel, and the sweep finds what
// was not heard. On a store that it has alone, nothing of that is needed.
import type { Logger } from "pino";
import { hidingPasswordOf } from "../shown-address.ts";
import type { SideBySide } from "../stores/backend.ts";
import { createQuietLog } from "../stores/quiet-log.ts";
import { ConnectionRegistry } from "../transport/connection-registry.ts";
import { startDeliverySweep } from "./delivery-sweep.ts";
import { startRevocationSweep } from "./revocation-sweep.ts";
import { SharedConnections } from "./shared-connections.ts";
import type { SignalBus } from "./signal-bus.ts";

export type JoinedBrokers = {
  readonly connections: ConnectionRegistry;
  /** Messages on the channel that no broker of this store had signed, since the start. */
  readonly forged: () => number;
  readonly leave: () => Promise<void>;
};

type Surroundings = { readonly nextId: () => string; readonly log: Logger };

export async function joinBrokers(
  sideBySide: SideBySide | undefined,
  { nextId, log }: Surroundings,
): Promise<JoinedBrokers> {
  if (sideBySide === undefined) {
    return { connections: new ConnectionRegistry(), forged: () => 0, leave: async () => undefined };
  }
  const { openSignalBus } = await import("./signal-bus.ts");
  let bus: SignalBus | undefined;
  const shared = new SharedConnections({ nextStamp: nextId, publish: (signal) => bus?.publish(signal) });
  const sweep = startDeliverySweep({
    intervalMs: sideBySide.sweepIntervalMs,
    recipients: () => shared.recipients(),
    findWaiting: sideBySide.findWaiting,
    wake: (recipient) => shared.wakeHere(recipient),
    onFailure: createQuietLog((error, times) =>
      log.error({ event: "delivery_sweep_failed", err: error, times }, "looking for waiting deliveries failed"),
    ),
  });
  const revocations = startRevocationSweep({
    nowMs: Date.now,
    findRevokedSince: sideBySide.findRevokedSince,
    cut: (member) => shared.cutHere(member),
    onFailure: createQuietLog((error, times) =>
      log.error({ event: "revocation_sweep_failed", err: error, times }, "looking for revoked members failed"),
    ),
  });
  let forged = 0;
  const logForged = createQuietLog((_, times) =>
    log.warn({ event: "signals_forged", times }, "another program speaks on the brokers' channel of this Redis"),
  );
  const shown = hidingPasswordOf(sideBySide.redisUrl);
  bus = openSignalBus({
    redisUrl: sideBySide.redisUrl,
    brokerId: nextId(),
    secret: sideBySide.signalSecret,
    onForged: () => {
      forged += 1;
      logForged(undefined);
    },
    onSignal: (signal) => shared.receive(signal),
    onListening: () => {
      shared.announceAgain();
      void sweep.sweep();
    },
    // The two connections come back one after the other, and what is announced between them is not sent.
    onSpeaking: () => shared.announceAgain(),
    onProblem: createQuietLog((error, times) =>
      log.warn({ event: "signals_unavailable", err: shown(error), times }, "signals to other brokers are lost"),
    ),
  });
  return {
    connections: shared,
    forged: () => forged,
    leave: async () => {
      sweep.stop();
      revocations.stop();
      bus?.close();
      // Closing the store under a question would look like a failure.
      await Promise.all([sweep.sweep(), revocations.sweep()]);
    },
  };
}

// How full the outbox is against its own limit. Rows that are done make room first; only then are new sends refused, before
// the limit, so that what is queued has room to drain. Measuring asks the database, so it happens once for many sends while
// there is room.
import { MeshError } from "@claudemesh/protocol/errors";
import type { Clock, Log, OutboxStore } from "../ports.ts";

export type StorageGauge = {
  /** Throws insufficient_storage when a new send has no room. Nothing was consumed. */
  readonly admit: (payloadBytes: number) => void;
  /** Turns done rows into tombstones, oldest first and in small steps, until the send has room; false: it has none. */
  readonly makeRoom: (payloadBytes: number) => Promise<boolean>;
  readonly usedBytes: () => number;
  readonly maxBytes: number;
};

export type GaugePorts = {
  readonly outbox: Pick<OutboxStore, "usedBytes" | "prune">;
  readonly maxBytes: () => number;
  readonly clock: Pick<Clock, "nowMs">;
  readonly log: Log;
  /** Most of the outbox is used; once each time that it comes to that. */
  readonly onPressure: (fill: { readonly used_bytes: number; readonly max_bytes: number }) => void;
};

const warnShare = 0.8;
const refuseShare = 0.95;
/** Room is made down to here, so that the next sends need not make some again. */
const relievedShare = 0.9;
/** What a row takes beside its payload, generously: columns and index entries. */
const rowOverheadBytes = 1_024;
const sendsPerMeasurement = 256;
const rowsPerStep = 256;
/** What one send waits for at most; the next one goes on. */
const stepsMax = 16;

const fullText =
  "The outbox has reached its [outbox] max_bytes with rows that are not done; nothing was consumed. `claudemesh daemon status` says what they wait for; or raise [outbox] max_bytes and run `claudemesh daemon reload`.";

export function createStorageGauge({ outbox, maxBytes, clock, log, onPressure }: GaugePorts): StorageGauge {
  let estimateBytes = outbox.usedBytes();
  let sendsSince = 0;
  let warned = false;
  let relieving: Promise<void> | undefined;

  const hasRoom = (payloadBytes: number) => estimateBytes + payloadBytes < maxBytes() * refuseShare;
  const measure = () => {
    estimateBytes = outbox.usedBytes();
    sendsSince = 0;
    const above = estimateBytes >= maxBytes() * warnShare;
    if (above && !warned) {
      const fill = { used_bytes: estimateBytes, max_bytes: maxBytes() };
      log.warn({ event: "outbox_pressure_high", ...fill }, "the outbox has used most of its [outbox] max_bytes");
      onPressure(fill);
    }
    warned = above;
  };
  const relieve = async (payloadBytes: number) => {
    let made = 0;
    for (let steps = 0; steps < stepsMax && estimateBytes + payloadBytes >= maxBytes() * relievedShare; steps++) {
      const nowMs = clock.nowMs();
      const rows = await outbox.prune(nowMs + 1, nowMs, rowsPerStep);
      made += rows;
      measure();
      if (rows === 0) break;
    }
    if (made > 0) log.info({ event: "outbox_relieved", rows: made }, "done rows became tombstones to make room");
  };
  return {
    admit: (payloadBytes) => {
      sendsSince++;
      if (sendsSince >= sendsPerMeasurement || !hasRoom(payloadBytes)) measure();
      if (!hasRoom(payloadBytes)) {
        throw new MeshError("insufficient_storage", fullText, {
          used_bytes: estimateBytes,
          max_bytes: maxBytes(),
        });
      }
      estimateBytes += payloadBytes + rowOverheadBytes;
    },
    makeRoom: async (payloadBytes) => {
      relieving ??= relieve(payloadBytes).finally(() => {
        relieving = undefined;
      });
      await relieving;
      return hasRoom(payloadBytes);
    },
    usedBytes: () => outbox.usedBytes(),
    get maxBytes() {
      return maxBytes();
    },
  };
}

/** Admits a send, and makes room for it where there is none. */
export async function admitWithRoom(
  gauge: Pick<StorageGauge, "admit" | "makeRoom">,
  payloadBytes: number,
): Promise<void> {
  try {
    gauge.admit(payloadBytes);
  } catch (error) {
    const isFull = error instanceof MeshError && error.code === "insufficient_storage";
    if (!isFull || !(await gauge.makeRoom(payloadBytes))) throw error;
    gauge.admit(payloadBytes);
  }
}

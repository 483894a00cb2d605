// How full the outbox is against its own limit. New sends are refused before the limit, so that what is queued has
// room to drain. Measuring asks the database, so it happens once for many sends while there is room.
import { MeshError } from "@claudemesh/protocol/errors";
import type { Log, OutboxStore } from "../ports.ts";

export type StorageGauge = {
  /** Throws insufficient_storage when a new send has no room. Nothing was consumed. */
  readonly admit: (payloadBytes: number) => void;
  readonly usedBytes: () => number;
  readonly maxBytes: number;
};

const warnShare = 0.8;
const refuseShare = 0.95;
/** What a row takes beside its payload, generously: columns and index entries. */
const rowOverheadBytes = 1_024;
const sendsPerMeasurement = 256;

export function createStorageGauge(
  outbox: Pick<OutboxStore, "usedBytes">,
  maxBytes: () => number,
  log: Log,
): StorageGauge {
  const refuseAtBytes = () => maxBytes() * refuseShare;
  let estimateBytes = outbox.usedBytes();
  let sendsSince = 0;
  let warned = false;

  const measure = () => {
    estimateBytes = outbox.usedBytes();
    sendsSince = 0;
    const above = estimateBytes >= maxBytes() * warnShare;
    if (above && !warned) {
      const fields = { event: "outbox_filling", used_bytes: estimateBytes, max_bytes: maxBytes() };
      log.warn(fields, "the outbox has used most of its [outbox] max_bytes");
    }
    warned = above;
  };
  return {
    admit: (payloadBytes) => {
      sendsSince++;
      if (sendsSince >= sendsPerMeasurement || estimateBytes + payloadBytes >= refuseAtBytes()) measure();
      if (estimateBytes + payloadBytes >= refuseAtBytes()) {
        throw new MeshError("insufficient_storage", "The outbox has reached its [outbox] max_bytes.", {
          used_bytes: estimateBytes,
          max_bytes: maxBytes(),
        });
      }
      estimateBytes += payloadBytes + rowOverheadBytes;
    },
    usedBytes: () => outbox.usedBytes(),
    get maxBytes() {
      return maxBytes();
    },
  };
}

// What a daemon does with every beat: takes sleep into account, ends old rows, goes on with a rebuild that came to a
// stop, and now and then puts old rows away.
import type { LinkStatus } from "@claudemesh/client/link-contract";
import type { Log } from "../ports.ts";
import type { Expiry } from "./expire.ts";
import type { InboxRebuild } from "./rebuild-inbox.ts";

export type RegularWorkPorts = {
  readonly noticeSleep: () => void;
  readonly expiry: Pick<Expiry, "sweep">;
  readonly rebuild: Pick<InboxRebuild, "run">;
  readonly linkStatus: () => LinkStatus;
  readonly keepHouse: (isStopping: () => boolean) => Promise<void>;
  readonly log: Log;
};

const beatsPerHousekeeping = 60;

export function createRegularWork(ports: RegularWorkPorts): (beat: number, isStopping: () => boolean) => Promise<void> {
  return async (beat, isStopping) => {
    ports.noticeSleep();
    // A page that was not answered, or that the disk refused, must not wait for a hello that may be long in coming.
    if (ports.linkStatus().state === "online") {
      ports.rebuild.run().catch((error: unknown) => {
        ports.log.error({ event: "background_failed", what: "rebuilding the inbox", err: error }, "the rebuild failed");
      });
    }
    await ports.expiry.sweep();
    if (beat % beatsPerHousekeeping === 0) await ports.keepHouse(isStopping);
  };
}

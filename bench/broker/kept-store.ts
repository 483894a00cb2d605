// A store that may outlast a round, and the two processes that a round has on it: one that measures in process, and a broker.
import type { Closing } from "../processes/closing.ts";
import { MeasuringProcess } from "../processes/measuring-process.ts";
import { BenchBroker } from "./bench-broker.ts";
import { readWholeStore } from "./read-whole-store.ts";
import { locationForBroker, type StoreLocation } from "./store-location.ts";
import type { MadeStore } from "./store-pair.ts";

export type KeptStore = MadeStore & {
  /** Of the same rows, for a broker. */
  readonly servedLocation: StoreLocation;
};

/** Of a store that is filled already. */
export const keepStore = ({ location, remove }: MadeStore): KeptStore => ({
  location,
  servedLocation: locationForBroker(location),
  remove,
});

/** New ones for every round: two of the same program differ, and are not compared for a whole run. */
export type RoundProcesses<Order, Result> = {
  readonly service: MeasuringProcess<Order, Result>;
  readonly broker: BenchBroker;
  readonly stop: () => Promise<void>;
};

export async function startOnStore<Order, Result>(
  closing: Closing,
  { location, servedLocation }: KeptStore,
  script: URL,
  home: string,
): Promise<RoundProcesses<Order, Result>> {
  await readWholeStore(location);
  if (servedLocation !== location) await readWholeStore(servedLocation);
  const service = await MeasuringProcess.start<Order, Result>(closing, script, JSON.stringify(location));
  const broker = await BenchBroker.start(servedLocation, home, closing);
  const stop = async () => {
    await broker.kill();
    await service.stop();
  };
  return { service, broker, stop };
}

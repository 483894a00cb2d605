// Which broker a home believes, as its config.toml says. A home that was made before brokers had keys keeps the first
// one that it meets; from then on that one and no other, until somebody changes it on purpose.
// Why: docs/decisions/0035.
import type { BrokerTrust } from "../link/broker-trust.ts";
import { findMeshConfig, type MeshConfig, type MeshPaths, writeMeshConfig } from "./home.ts";
import { LocalFileError } from "./private-files.ts";

export type HomeTrustEvents = {
  /** The home had no key, and has this one from now on. */
  readonly onKept?: (key: string) => void;
  /** It could not be written down; this process believes that one broker all the same, and the next one starts anew. */
  readonly onUnkept?: (key: string, error: unknown) => void;
};

/** `config`: as it was read when the work began. Later changes of the file count from the next connection on. */
export function trustOfHome(paths: MeshPaths, config: MeshConfig, events: HomeTrustEvents = {}): BrokerTrust {
  let known = config.broker_key;
  return {
    key: () => {
      known = readKey(paths, known);
      return known;
    },
    keep: (key) => {
      known = readKey(paths, known);
      if (known !== undefined) return known === key;
      known = key;
      try {
        pinBrokerKey(paths, key);
        events.onKept?.(key);
      } catch (error) {
        events.onUnkept?.(key, error);
      }
      return true;
    },
  };
}

/** Writes the key into `[mesh]`, in place of whatever stood there. */
export function pinBrokerKey(paths: MeshPaths, broker_key: string): void {
  const config = findMeshConfig(paths);
  if (config === undefined) throw new LocalFileError("missing", paths.config, `There is no mesh in ${paths.config}.`);
  writeMeshConfig(paths, { ...config, broker_key });
}

/** A file that cannot be read at the moment, as while it is edited, takes nothing back. */
function readKey(paths: MeshPaths, known: string | undefined): string | undefined {
  try {
    return findMeshConfig(paths)?.broker_key;
  } catch {
    return known;
  }
}

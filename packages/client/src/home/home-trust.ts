// Which broker a home trusts, according to its config.toml. A home that was made before brokers had keys pins the first
// key that it meets; from then on only that key is trusted, until the user changes it on purpose.
// Why: docs/decisions/0035.
import type { BrokerTrust } from "../link/broker-trust.ts";
import { findMeshConfig, type MeshConfig, type MeshPaths, writeMeshConfig } from "./home.ts";
import { LocalFileError } from "./private-files.ts";

export type HomeTrustEvents = {
  /** The home had no key, and has this one from now on. */
  readonly onKept?: (key: string) => void;
  /** The key could not be written; this process trusts it all the same, and the next one starts without a key. */
  readonly onUnkept?: (key: string, error: unknown) => void;
};

/** `config`: the file as it was read at the start. Later changes of the file take effect with the next connection. */
export function trustOfHome(paths: MeshPaths, config: MeshConfig, events: HomeTrustEvents = {}): BrokerTrust {
  let pinnedKey = config.broker_key;
  return {
    key: () => {
      pinnedKey = readKey(paths, pinnedKey);
      return pinnedKey;
    },
    keep: (key) => {
      pinnedKey = readKey(paths, pinnedKey);
      if (pinnedKey !== undefined) return pinnedKey === key;
      pinnedKey = key;
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

/** Writes the key into `[mesh]`, replacing any key there. */
export function pinBrokerKey(paths: MeshPaths, broker_key: string): void {
  const config = findMeshConfig(paths);
  if (config === undefined) throw new LocalFileError("missing", paths.config, `There is no mesh in ${paths.config}.`);
  writeMeshConfig(paths, { ...config, broker_key });
}

/**
 * A file that cannot be read at the moment, for example during an edit, changes nothing: the key known before stays.
 */
function readKey(paths: MeshPaths, pinnedKey: string | undefined): string | undefined {
  try {
    return findMeshConfig(paths)?.broker_key;
  } catch {
    return pinnedKey;
  }
}

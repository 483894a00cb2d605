// The brokers of a mesh beside the one in `[mesh] broker`: those that the user gave (`[mesh] brokers`), and those that
// the brokers announced, which a daemon keeps in a file of its own.
import { rmSync } from "node:fs";
import type { MeshConfig, MeshPaths } from "./home.ts";
import { LocalFileError, readPrivateFile, replacePrivateFile } from "./private-files.ts";

const learnedMax = 64;

export function readKnownBrokers(paths: Pick<MeshPaths, "brokers">, config: MeshConfig): readonly string[] {
  return [...(config.brokers ?? []), ...readLearned(paths.brokers)];
}

export function writeLearnedBrokers(paths: Pick<MeshPaths, "brokers">, urls: readonly string[]): void {
  if (urls.length === 0) rmSync(paths.brokers, { force: true });
  else replacePrivateFile(paths.brokers, `${JSON.stringify(urls.slice(0, learnedMax))}\n`);
}

/** An unreadable file counts as empty: the brokers announce their addresses again at the next hello. */
function readLearned(path: string): readonly string[] {
  try {
    const value: unknown = JSON.parse(readPrivateFile(path));
    return Array.isArray(value) ? value.filter((url) => typeof url === "string").slice(0, learnedMax) : [];
  } catch (error) {
    if (error instanceof LocalFileError || error instanceof SyntaxError) return [];
    throw error;
  }
}

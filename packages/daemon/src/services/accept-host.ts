// `daemon accept-host`: this host is the right one for these keys. The operator's word replaces what was written down.
import type { MeshPaths } from "@claudemesh/client/home";
import { LocalFileError } from "@claudemesh/client/internal/private-files";
import {
  compareHosts,
  type HostFacts,
  type HostRecord,
  type HostVerdict,
  recordHost,
} from "../core/host-fingerprint.ts";
import { readHostRecord, writeHostRecord } from "../files/host-fingerprint-file.ts";
import { readHostFacts } from "../files/this-host.ts";
import { withStoppedDaemon } from "../operator-refused.ts";

export type AcceptedHost = {
  readonly mesh: string;
  /** What a start would have found before. */
  readonly was: HostVerdict | "not recorded" | "unreadable";
  /** The first 16 characters; null where this host has nothing to recognise it by. */
  readonly fingerprint: string | null;
};

/** The daemon must not be running. Again is harmless. */
export function acceptHost(paths: MeshPaths, readFacts: () => HostFacts = readHostFacts): Promise<AcceptedHost> {
  return withStoppedDaemon(paths, () => {
    const facts = readFacts();
    const was = judgeBefore(paths, facts);
    const record: HostRecord = recordHost(facts);
    writeHostRecord(paths.hostFingerprint, record);
    return { mesh: paths.mesh, was, fingerprint: record.fingerprint?.slice(0, 16) ?? null };
  });
}

function judgeBefore(paths: MeshPaths, facts: HostFacts): AcceptedHost["was"] {
  try {
    const stored = readHostRecord(paths.hostFingerprint);
    return stored === undefined ? "not recorded" : compareHosts(stored, facts);
  } catch (error) {
    if (error instanceof LocalFileError && error.problem === "unreadable") return "unreadable";
    throw error;
  }
}

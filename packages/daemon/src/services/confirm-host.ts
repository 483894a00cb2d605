// At every start: is this the host that the folder's keys belong to? A copy of a home on a second host is refused, or
// only logged, as `[clone] policy` says; the first start records its host.
import type { MeshPaths } from "@claudemesh/client/home";
import {
  type ClonePolicy,
  chooseRecord,
  compareHosts,
  type HostFacts,
  type HostRecord,
  recordHost,
} from "../core/host-fingerprint.ts";
import { readHostRecord, writeHostRecord } from "../files/host-fingerprint-file.ts";
import type { Log } from "../ports.ts";
import { StartRefused } from "../start-refused.ts";

export type HostCheck = {
  readonly paths: Pick<MeshPaths, "mesh" | "hostFingerprint">;
  readonly facts: HostFacts;
  readonly policy: ClonePolicy;
  readonly log: Log;
};

/** Throws StartRefused where the policy says so; then nothing was changed. */
export function confirmHost({ paths, facts, policy, log }: HostCheck): void {
  const stored = readHostRecord(paths.hostFingerprint);
  if (stored === undefined) {
    writeHostRecord(paths.hostFingerprint, recordHost(facts));
    return;
  }
  const verdict = compareHosts(stored, facts);
  if (verdict === "changed") {
    if (policy === "refuse") throw new StartRefused("host_changed", explainChange(paths));
    const fields = { event: "host_changed", policy, stored: shorten(stored), current: shorten(recordHost(facts)) };
    log[policy === "warn" ? "warn" : "info"](fields, "this is not the host that the keys were used on before");
    return;
  }
  if (verdict === "unknown") {
    const fields = { event: "host_unknown", host_id_unreadable: facts.hostIdUnreadable };
    log.info(fields, "this host has nothing to recognise it by, so that a copy of this folder would not be noticed");
  }
  const record = chooseRecord(stored, facts);
  if (!isSame(record, stored)) writeHostRecord(paths.hostFingerprint, record);
}

function explainChange({ mesh, hostFingerprint }: HostCheck["paths"]): string {
  return [
    `These keys were used on another host (${hostFingerprint}).`,
    "If the host is the right one, because it was moved or set up anew and the other is gone:",
    `claudemesh daemon accept-host --mesh ${mesh}`,
    "— if this is a copy and the other lives on, get keys of its own for it:",
    `claudemesh daemon remint --mesh ${mesh} --invite <invite>`,
  ].join(" ");
}

function shorten({ fingerprint }: HostRecord): string | null {
  return fingerprint?.slice(0, 16) ?? null;
}

function isSame(a: HostRecord, b: HostRecord): boolean {
  return a.hostIdSha256 === b.hostIdSha256 && a.macSha256 === b.macSha256 && a.fingerprint === b.fingerprint;
}

// host_fingerprint.json: the host that a folder's keys are used on, as hashes. Written at the first start, and whenever
// an operator accepts another host.
import { LocalFileError, readPrivateFile, replacePrivateFile } from "@claudemesh/client/internal/private-files";
import type { HostRecord } from "../core/host-fingerprint.ts";

const fileVersion = 1;
const hashPattern = /^[0-9a-f]{64}$/;

/** Undefined where there is no such file yet. */
export function readHostRecord(path: string): HostRecord | undefined {
  let text: string;
  try {
    text = readPrivateFile(path);
  } catch (error) {
    if (error instanceof LocalFileError && error.problem === "missing") return undefined;
    throw error;
  }
  return parseRecord(text, path);
}

export function writeHostRecord(path: string, record: HostRecord): void {
  const file = {
    version: fileVersion,
    fingerprint: record.fingerprint,
    host_id_sha256: record.hostIdSha256,
    mac_sha256: record.macSha256,
  };
  replacePrivateFile(path, `${JSON.stringify(file, undefined, 2)}\n`);
}

function parseRecord(text: string, path: string): HostRecord {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw unusable(path, cause);
  }
  const { version, fingerprint, host_id_sha256, mac_sha256 } = (value ?? {}) as Record<string, unknown>;
  const hashes = { fingerprint, hostIdSha256: host_id_sha256, macSha256: mac_sha256 };
  const isWhole = Object.values(hashes).every(
    (each) => each === undefined || (typeof each === "string" && hashPattern.test(each)),
  );
  if (version !== fileVersion || !isWhole) throw unusable(path);
  return hashes as HostRecord;
}

/** Taken for no file, a damaged one would let a copy of the folder start. */
function unusable(path: string, cause?: unknown): LocalFileError {
  const message = `${path} cannot be read; if this is the right host for these keys: claudemesh daemon accept-host`;
  return new LocalFileError("unreadable", path, message, cause);
}

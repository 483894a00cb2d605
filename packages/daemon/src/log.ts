// The daemon's log: JSON lines with stable event names. Bodies, tokens and secret keys never get here.
import type { FailpointName } from "@claudemesh/storage/failpoint-names";
import { failpointNames } from "@claudemesh/storage/failpoint-names";
import {
  createFailpoints,
  FailpointSyntaxError,
  type Failpoints,
  parseFailpoints,
} from "@claudemesh/storage/failpoints";
import { pino } from "pino";
import type { LogFile } from "./files/log-file.ts";
import type { Log } from "./ports.ts";
import { StartRefused } from "./start-refused.ts";

export function createDaemonLog(file: Pick<LogFile, "write">, mesh: string): Log {
  return pino({ base: { mesh, pid: process.pid }, timestamp: pino.stdTimeFunctions.isoTime }, file);
}

/** A daemon with fault points must not be mistaken for one that serves people. */
export function readFailpoints(text: string, log: Log): Failpoints<FailpointName> {
  try {
    const failpoints = createFailpoints(parseFailpoints(text, failpointNames));
    if (failpoints.active) log.error({ event: "failpoints_active" }, `FAULT POINTS ARE SET: ${failpoints.describe()}`);
    return failpoints;
  } catch (error) {
    if (!(error instanceof FailpointSyntaxError)) throw error;
    throw new StartRefused("config_invalid", `CLAUDEMESH_FAILPOINTS: ${error.message}`, error);
  }
}

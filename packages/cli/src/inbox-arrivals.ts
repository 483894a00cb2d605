// `claudemesh inbox --wait` and `--follow`: what arrives, when it arrives.

import type { DaemonClient, InboxQuery } from "@claudemesh/client/daemon";
import { withDaemon } from "./daemon-access.ts";
import { exitCodes, expectBody } from "./exit-codes.ts";
import { inboxCells, inboxHeader, inboxLine } from "./output/inbox-line.ts";
import { jsonText } from "./output/printable.ts";
import { formatTable } from "./output/table.ts";
import { pathsFor, type Shell } from "./shell.ts";
import { stopSignal } from "./signals.ts";

type Options = { readonly mesh?: string; readonly json?: boolean };

/** That nothing came is no value to print for people, but one for programs: they go on from its cursor. */
export function waitForInbox(shell: Shell, options: Options, query: InboxQuery, timeoutMs: number) {
  return withDaemon(shell, pathsFor(shell, options), async (daemon) => {
    const page = expectBody(await daemon.waitForInbox(query, { timeoutMs }));
    if (page.items.length > 0) {
      return { value: page, text: formatTable(inboxHeader, page.items.map(inboxCells), shell.columns) };
    }
    process.exitCode = exitCodes.failed;
    const goOn = page.next_cursor === null ? "" : `; go on without a gap with --cursor ${page.next_cursor}`;
    shell.err(`claudemesh: Nothing arrived within ${timeoutMs / 1000} s${goOn}.`);
    if (options.json === true) shell.out(jsonText(page));
    return undefined;
  });
}

export function followInbox(shell: Shell, options: Options, query: InboxQuery): Promise<undefined> {
  return untilStopped(shell, options, async (daemon, signal) => {
    for await (const item of daemon.followInbox(query, { signal })) {
      shell.out(options.json === true ? jsonText(item) : inboxLine(item, shell.columns));
    }
  });
}

/** Goes on until Ctrl-C, or until nobody reads what is printed. */
export function untilStopped(
  shell: Shell,
  options: Options,
  use: (daemon: DaemonClient, signal: AbortSignal) => Promise<void>,
): Promise<undefined> {
  const stop = new AbortController();
  void Promise.race([stopSignal(), shell.readerGone]).then(() => stop.abort());
  return withDaemon(shell, pathsFor(shell, options), async (daemon) => {
    await use(daemon, stop.signal);
    return undefined;
  });
}

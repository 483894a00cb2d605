// `claudemesh daemon …`, for what a daemon keeps on disk: its log, the host and the keys that are its own, and copying and
// saving its stores. None of these commands asks a running daemon; remint, accept-host and recover need it to be stopped.

import { resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { AcceptedHost, Recovery, Remint } from "@claudemesh/daemon/offline";
import { MeshError } from "@claudemesh/protocol/errors";
import { type Command, InvalidArgumentError } from "commander";
import { type Commands, type CommonOptions, examples, run, withMesh, withTimes } from "../command.ts";
import { openLog } from "../daemon/log-file-reader.ts";
import { type Confirmable, confirm, withYes } from "../input/confirm.ts";
import { formatLogLine } from "../output/log-line.ts";
import { escapeUnsafe } from "../output/printable.ts";
import { pathsFor, type Shell } from "../shell.ts";
import { stopSignal } from "../signals.ts";

export const commands = {
  "daemon logs": defineLogs,
  "daemon accept-host": defineAcceptHost,
  "daemon remint": defineRemint,
  "daemon backup": defineBackup,
  "daemon recover": defineRecover,
} satisfies Commands;

type LogsOptions = { mesh?: string; json?: boolean; follow?: boolean; lines: number };

const pollMs = 200;

/** What the daemon has logged, for people or word for word. Reads the file; the daemon need not be running. */
function defineLogs(command: Command, shell: Shell): void {
  withTimes(withMesh(command))
    .option("--follow", "go on with what comes, until Ctrl-C")
    .option("--lines <n>", "how many of the last lines, up to 100000", parseLines, 50)
    .action((options: LogsOptions) => run(shell, options, () => showLog(shell, options)));
  examples(
    command,
    "claudemesh daemon logs",
    "claudemesh daemon logs --follow --lines 10",
    "claudemesh daemon logs --json --lines 1000 | grep drain",
  );
}

async function showLog(shell: Shell, options: LogsOptions): Promise<undefined> {
  const paths = pathsFor(shell, options);
  const log = openLog(paths.log, options.lines);
  if (log === undefined) {
    throw new MeshError("not_found", `There is no ${paths.log} yet; start the daemon with \`claudemesh daemon up\`.`);
  }
  const print = (lines: readonly string[]) => {
    if (lines.length > 0) shell.out(lines.map(options.json === true ? escapeUnsafe : formatLogLine).join("\n"));
  };
  print(log.lines);
  if (options.follow === true) await followLog(shell, log.follow, print);
  log.follow.close();
  return undefined;
}

async function followLog(
  shell: Shell,
  log: { readonly next: () => string[] },
  print: (lines: readonly string[]) => void,
): Promise<void> {
  let over = false;
  void Promise.race([stopSignal(), shell.readerGone]).then(() => {
    over = true;
  });
  while (!over) {
    print(log.next());
    await sleep(pollMs);
  }
}

function parseLines(text: string): number {
  const lines = /^[0-9]{1,6}$/.test(text) ? Number(text) : -1;
  if (lines < 0 || lines > 100_000) throw new InvalidArgumentError("It takes a whole number from 0 to 100000.");
  return lines;
}

/** This is the right host for the keys of this home. The daemon must not be running. */
function defineAcceptHost(command: Command, shell: Shell): void {
  withMesh(command).action((options: CommonOptions) =>
    run(shell, options, async () => {
      const { acceptHost } = await import("@claudemesh/daemon/offline");
      const value = await acceptHost(pathsFor(shell, options));
      return { value, text: describeHost(value) };
    }),
  );
  examples(command, "claudemesh daemon accept-host", "claudemesh daemon accept-host --mesh acme --json");
}

function describeHost({ mesh, was, fingerprint }: AcceptedHost): string {
  const before = {
    changed: "They were used on another host before; stop the daemon there for good, or both will fail.",
    same: "That was so already.",
    unknown: "Whether it was another one before cannot be told.",
    "not recorded": "None was written down before.",
    unreadable: "What was written down before could not be read.",
  }[was];
  const nameless = "This host has nothing to recognise it by, so that a copy of this home would not be noticed.";
  const next = `Start the daemon:  claudemesh daemon up --mesh ${mesh}`;
  return [
    `The keys of ${mesh} belong to this host now. ${before}`,
    ...(fingerprint === null ? [nameless] : []),
    next,
  ].join("\n");
}

type RemintOptions = Confirmable & {
  mesh?: string;
  json?: boolean;
  invite?: string;
  inviteFile?: string;
  name?: string;
};

/** New keys for this home, which make a new member of the mesh. The daemon must not be running. */
function defineRemint(command: Command, shell: Shell): void {
  withYes(withMesh(command))
    .option(
      "--invite <invite>",
      "- for standard input, or the line that an owner gave you: new keys are a new member (or CLAUDEMESH_INVITE)",
    )
    .option("--invite-file <path>", "a file that holds the invite")
    .option("--name <member>", "its name in the mesh (default: the name of the old one)")
    .action((options: RemintOptions) =>
      run(shell, options, async () => {
        await confirm(
          shell,
          options,
          "This home will have new keys, and be a new member: what was sealed for the old ones is not readable any more.",
        );
        const [{ remintKeys }, { decodeInvite }, { readInviteText }] = await Promise.all([
          import("@claudemesh/daemon/offline"),
          import("@claudemesh/protocol/wire/invite"),
          import("../input/secret-input.ts"),
        ]);
        const { name } = options;
        const text = readInviteText(shell, { given: options.invite, file: options.inviteFile });
        const order = { invite: decodeInvite(text), ...(name === undefined ? {} : { name }) };
        const value = await remintKeys(pathsFor(shell, options), order);
        return { value, text: describeRemint(value) };
      }),
    );
  examples(
    command,
    "claudemesh daemon remint --invite - --name laptop-2 < invite.txt",
    "claudemesh daemon remint --invite-file invite.txt",
  );
}

function describeRemint(reminted: Remint): string {
  const { mesh, name, role, old_pubkey, new_pubkey, old_keys, rows_retired } = reminted;
  const retired = `${rows_retired} dead rows cannot be requeued any more: they were sealed with the old keys, or only those could ask whether they arrived.`;
  return [
    `${name} is a new member of ${mesh} (${role}), and this host is its own.`,
    `New key  ${new_pubkey}`,
    `Old key  ${old_pubkey}, kept in ${old_keys}`,
    "What was sent to the old key and has not arrived does not arrive here. Topics have to be subscribed to again.",
    ...(rows_retired === 0 ? [] : [retired]),
    "The old key is still a member, with the role that it has. Once it is not used any more, and unless it is the only owner:",
    `  claudemesh mesh revoke ${old_pubkey} --mesh ${mesh}  (by an owner)`,
    `Start the daemon:  claudemesh daemon up --mesh ${mesh}`,
  ].join("\n");
}

type BackupOptions = { mesh?: string; json?: boolean; withKeys?: boolean };

/** Outbox, inbox and settings in a folder of their own, while the daemon runs or not. */
function defineBackup(command: Command, shell: Shell): void {
  withMesh(command)
    .argument("<folder>", "where to put it; must not exist, or be empty")
    .option("--with-keys", "the member's secret keys too: whoever has the backup is then this member")
    .action((folder: string, options: BackupOptions) =>
      run(shell, options, async () => {
        const { backUpDaemon } = await import("@claudemesh/daemon/offline");
        const withKeys = options.withKeys === true;
        const value = await backUpDaemon(pathsFor(shell, options), { folder: resolve(folder), withKeys });
        const inbox = value.inbox_rows === null ? "no inbox" : `the inbox (messages: ${value.inbox_rows})`;
        const keys = withKeys ? "The keys are in it: keep it as safe as them." : "The keys are not in it.";
        const text = `${value.folder} holds the outbox (rows: ${value.outbox_rows}) and ${inbox}. ${keys}\nWhat putting it back means: docs/operations.md`;
        return { value, text };
      }),
    );
  examples(command, "claudemesh daemon backup ./backup-monday", "claudemesh daemon backup /mnt/safe/acme --with-keys");
}

/** More are in the JSON value. */
const shownIds = 20;

/**
 * Saves what can be read of a damaged outbox. Never runs by itself, because a person should read what it says. The
 * daemon must not be running.
 */
function defineRecover(command: Command, shell: Shell): void {
  withMesh(command).action((options: CommonOptions) =>
    run(shell, options, async () => {
      const { salvageOutbox } = await import("@claudemesh/daemon/offline");
      const recovery = await salvageOutbox(pathsFor(shell, options));
      return { value: showRecovery(recovery), text: describeRecovery(recovery) };
    }),
  );
  examples(command, "claudemesh daemon recover", "claudemesh daemon recover --mesh acme --json");
}

function showRecovery(recovery: Recovery): Record<string, unknown> {
  const { mesh, outcome } = recovery;
  if (recovery.outcome !== "recovered") return { mesh, outcome };
  const { rowsRead, rowsLost, lostIds, tombstonesRead, tombstonesLost, fateUnknown } = recovery.salvage;
  return {
    mesh,
    outcome,
    problem: recovery.problem,
    set_aside: recovery.setAside,
    rows_read: rowsRead,
    rows_lost: rowsLost,
    lost_client_message_ids: lostIds,
    tombstones_read: tombstonesRead,
    tombstones_lost: tombstonesLost,
    fate_unknown: fateUnknown,
  };
}

function describeRecovery(recovery: Recovery): string {
  const { mesh } = recovery;
  if (recovery.outcome === "sound") return `The outbox of ${mesh} is sound; nothing was changed.`;
  const start = `Start the daemon:  claudemesh daemon up --mesh ${mesh}`;
  if (recovery.outcome === "finished") {
    return `The recovery that was cut off is finished; the damaged outbox lies beside the new one.\n${start}`;
  }
  const { rowsRead, rowsLost, lostIds, tombstonesRead, tombstonesLost, fateUnknown } = recovery.salvage;
  const ids = lostIds.slice(0, shownIds).map((id) => `  ${id}`);
  const more = lostIds.length > shownIds ? [`  and ${lostIds.length - shownIds} more, see --json`] : [];
  return [
    `The outbox of ${mesh} was damaged: ${recovery.problem}`,
    `${rowsRead} rows and ${tombstonesRead} tombstones were read; ${rowsLost} and ${tombstonesLost} that are known of were not.`,
    ...(ids.length === 0 ? [] : ["Lost, as far as their ids are known:", ...ids, ...more]),
    `${fateUnknown} rows are sent again under their own ids; the broker knows those that it has.`,
    "Other ids may be missing. One of them that is sent again is taken for new here, and the broker decides.",
    `The damaged file is kept: ${recovery.setAside}`,
    start,
  ].join("\n");
}

// `claudemesh daemon outbox dismiss`: dead rows that need no more attention. They stay, with when they were let go and why.
import type { DaemonClient, OutboxItem } from "@claudemesh/client/daemon";
import { isErrorBody } from "@claudemesh/protocol/errors";
import type { Command } from "commander";
import { messageId } from "../argument-forms.ts";
import { examples, type Outcome, run, withMesh } from "../command.ts";
import { withDaemon } from "../daemon-access.ts";
import { expectBody, WrongUsage } from "../exit-codes.ts";
import { pagesOf } from "../list-pages.ts";
import { pathsFor, type Shell } from "../shell.ts";

type Options = { mesh?: string; json?: boolean; why: string; all?: boolean };

export function define(command: Command, shell: Shell): void {
  withMesh(command)
    .argument("[id]", "outbox id or client id of a dead row", messageId)
    .option("--all", "every dead row, and of a member that was removed from the mesh also those that wait")
    .requiredOption("--why <text>", "why it needs no more attention, for whoever reads the outbox later")
    .action((id: string | undefined, options: Options) => run(shell, options, () => dismiss(shell, options, id)));
  examples(
    command,
    'claudemesh daemon outbox dismiss build-42 --why "the topic is gone for good"',
    'claudemesh daemon outbox dismiss --all --why "this host was removed from the mesh"',
  );
}

async function dismiss(shell: Shell, options: Options, id: string | undefined): Promise<Outcome> {
  const { why, all = false } = options;
  if ((id === undefined) !== all) throw new WrongUsage("Name one row, or give --all.");
  return withDaemon(shell, pathsFor(shell, options), async (daemon) => {
    if (id === undefined) {
      const dismissed = await dismissAll(daemon, why);
      return {
        value: { dismissed },
        text: `${dismissed} ${dismissed === 1 ? "row was" : "rows were"} dismissed: ${why}`,
      };
    }
    const value = expectBody(await daemon.dismiss({ id, why }));
    return { value, text: `${value.client_message_id}  dead, dismissed: ${value.dismissed_why}` };
  });
}

async function dismissAll(daemon: DaemonClient, why: string): Promise<number> {
  const { membership_ended_at: endedAt } = expectBody(await daemon.version());
  let dismissed = 0;
  for (const status of endedAt === undefined ? (["dead"] as const) : (["dead", "pending"] as const)) {
    const pages = pagesOf<OutboxItem, string>(async ({ limit, place }) => {
      const query = { status, limit, ...(place !== undefined && { cursor: place }) };
      const { items, next_cursor: next } = expectBody(await daemon.outbox(query));
      return { items, next };
    }, undefined);
    for await (const items of pages) {
      for (const { id } of items.filter((item) => item.dismissed_at === null)) {
        const answer = await daemon.dismiss({ id, why });
        // It has moved on since it was listed.
        if (isErrorBody(answer.body) && answer.body.error === "not_dismissible") continue;
        expectBody(answer);
        dismissed++;
      }
    }
  }
  return dismissed;
}

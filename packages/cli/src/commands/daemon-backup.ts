// `claudemesh daemon backup`: outbox, inbox and settings in a folder of their own, while the daemon runs or not.
import { resolve } from "node:path";
import type { Command } from "commander";
import { examples, run, withMesh } from "../command.ts";
import { pathsFor, type Shell } from "../shell.ts";

type Options = { mesh?: string; json?: boolean; withKeys?: boolean };

export function define(command: Command, shell: Shell): void {
  withMesh(command)
    .argument("<folder>", "where to put it; must not exist, or be empty")
    .option("--with-keys", "the member's secret keys too: whoever has the backup is then this member")
    .action((folder: string, options: Options) =>
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

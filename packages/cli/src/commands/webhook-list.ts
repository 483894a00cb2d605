// `claudemesh webhook list`: never the secrets.
import type { Command } from "commander";
import { type CommonOptions, examples, run, withMesh } from "../command.ts";
import { asMember, readAll } from "../member.ts";
import { formatTable } from "../output/table.ts";
import { pathsFor, type Shell } from "../shell.ts";

type Webhook = {
  readonly id: string;
  readonly url: string;
  readonly topics: readonly string[] | null;
  readonly pending: number;
  readonly parked: number;
};

export function define(command: Command, shell: Shell): void {
  withMesh(command).action((options: CommonOptions) =>
    run(shell, options, async () => {
      const items = await asMember(shell, pathsFor(shell, options), (call) => readAll<Webhook>(call, "webhook.list"));
      const rows = items.map(({ id, url, topics, pending, parked }) => [
        id,
        String(pending),
        String(parked),
        topics?.join(" ") ?? "(all)",
        url,
      ]);
      const table = formatTable(["WEBHOOK", "OPEN", "PARKED", "TOPICS", "URL"], rows, shell.columns);
      return { value: { items }, text: rows.length === 0 ? "There is no webhook." : table };
    }),
  );
  examples(command, "claudemesh webhook list", "claudemesh webhook list --json");
}

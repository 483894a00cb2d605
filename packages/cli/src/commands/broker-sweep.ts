// `claudemesh broker sweep`: housekeeping now, to its end, and what has gone.
import { brokerOptions } from "@claudemesh/broker/config";
import type { Command } from "commander";
import { askBroker, type BrokerOptions, brokerConfigOf, withStoreOrBroker } from "../broker-store.ts";
import { examples, type Outcome, run } from "../command.ts";
import { type Confirmable, confirm, withYes } from "../confirm.ts";
import { WrongUsage } from "../exit-codes.ts";
import { formatTable } from "../output/table.ts";
import type { Shell } from "../shell.ts";

type Options = BrokerOptions &
  Confirmable & { readonly messageRetentionDays?: string; readonly dedupeRetentionDays?: string };
type Swept = Readonly<Record<string, number>>;

export function define(command: Command, shell: Shell): void {
  withYes(withStoreOrBroker(command));
  for (const known of [brokerOptions.messageRetention, brokerOptions.dedupe]) {
    command.option(`--${known.flag} <days>`, `with --store: ${known.expects} (default: as for broker serve)`);
  }
  command.action((options: Options) => run(shell, options, () => sweep(shell, options)));
  examples(
    command,
    "claudemesh broker sweep --broker http://127.0.0.1:7600 --admin-token-file broker.db.admin-token",
    "claudemesh broker sweep --store sqlite:./broker.db --message-retention-days 30 --json",
  );
}

async function sweep(shell: Shell, options: Options): Promise<Outcome> {
  const { messageRetentionDays, dedupeRetentionDays } = options;
  const given = messageRetentionDays !== undefined || dedupeRetentionDays !== undefined;
  if (options.broker !== undefined && given) {
    throw new WrongUsage(
      "A running broker sweeps by its own settings; give the days with --store, or to broker serve.",
    );
  }
  await confirm(shell, options, "Messages and records that are older than they have to be will be removed.");
  const asked = await askBroker<{ swept: Swept }>(shell, options, "/v1/admin/sweep", "Sweeping a running broker");
  const swept: Swept = asked?.swept ?? (await sweepOffline(shell, options));
  const rows = Object.entries(swept).map(([kind, count]) => [String(count), kind.replaceAll("_", " ")]);
  const text = rows.length === 0 ? "Nothing was due." : formatTable(["ROWS", "KIND"], rows, shell.columns);
  return { value: { swept }, text };
}

async function sweepOffline(shell: Shell, options: Options): Promise<Swept> {
  const { sweepStore } = await import("@claudemesh/broker/offline");
  const config = brokerConfigOf(shell, options, {
    [brokerOptions.messageRetention.flag]: options.messageRetentionDays,
    [brokerOptions.dedupe.flag]: options.dedupeRetentionDays,
  });
  return { ...(await sweepStore(config)) };
}

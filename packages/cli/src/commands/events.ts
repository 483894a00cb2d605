// `claudemesh events`: what happens at the daemon, as it happens.

import type { Command } from "commander";
import { examples, run, withMesh } from "../command.ts";
import { untilStopped } from "../inbox-arrivals.ts";
import { eventLine } from "../output/event-line.ts";
import { jsonText } from "../output/printable.ts";
import type { Shell } from "../shell.ts";

type Options = { mesh?: string; json?: boolean; lastEventId?: string };

export function define(command: Command, shell: Shell): void {
  withMesh(command)
    .option("--last-event-id <id>", "go on behind this event: no message that came since is missed")
    .action((options: Options) => run(shell, options, () => show(shell, options)));
  examples(command, "claudemesh events", 'claudemesh events --json | grep \'"event":"message"\'');
  command.addHelpText("after", jsonHelp);
}

const jsonHelp = `
It goes on until Ctrl-C, and over restarts of the daemon. --json prints one JSON value per event, each on a line of its
own: {"event":…,"id":…,"data":…}. Events are message, peer_join, peer_leave, broker_status, outbox,
outbox_pressure_high and lagged.`;

function show(shell: Shell, options: Options): Promise<undefined> {
  return untilStopped(shell, options, async (daemon, signal) => {
    const { lastEventId } = options;
    const position = lastEventId === undefined ? {} : { lastEventId };
    for await (const event of daemon.events({ ...position, signal })) {
      const { kind, id, data } = event;
      shell.out(options.json === true ? jsonText({ event: kind, id, data }) : eventLine(event, shell.columns));
    }
  });
}

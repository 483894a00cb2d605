// `claudemesh daemon rotate-token`: a new local token for programs that use the loopback.
import type { Command } from "commander";
import { type CommonOptions, examples, run, withMesh, withTimes } from "../command.ts";
import { withDaemon } from "../daemon-access.ts";
import { expectBody } from "../exit-codes.ts";
import { formatTime } from "../output/times.ts";
import { pathsFor, type Shell } from "../shell.ts";

export function define(command: Command, shell: Shell): void {
  withTimes(withMesh(command)).action((options: CommonOptions) =>
    run(shell, options, async () => {
      const paths = pathsFor(shell, options);
      const rotation = await withDaemon(shell, paths, async (daemon) => expectBody(await daemon.rotateToken()));
      const until = formatTime(rotation.old_token_valid_until);
      const text = `The new token is in ${paths.localToken}; the old one is good until ${until} UTC.`;
      return { value: { ...rotation, token_file: paths.localToken }, text };
    }),
  );
  examples(command, "claudemesh daemon rotate-token", "claudemesh daemon rotate-token --mesh acme --json");
}

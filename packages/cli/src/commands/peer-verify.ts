// `claudemesh peer verify`: shows the code that both members compare by voice, and with --yes marks the key as verified.
import { MeshError } from "@claudemesh/protocol/errors";
import type { Command } from "commander";
import { type CommonOptions, examples, run, withMesh } from "../command.ts";
import { withDaemon } from "../daemon-access.ts";
import { expectBody } from "../exit-codes.ts";
import { hint } from "../hints.ts";
import { pathsFor, type Shell } from "../shell.ts";

export function define(command: Command, shell: Shell): void {
  withMesh(command)
    .argument("<name>", "the member's name")
    .option("--yes", "the member reads out the same code: mark this key as verified")
    .action((given: string, options: CommonOptions & { readonly yes?: boolean }) =>
      run(shell, options, () =>
        withDaemon(shell, pathsFor(shell, options), async (daemon) => {
          const name = given.replace(/^@/, "");
          const pin = expectBody(await daemon.pin(name));
          if (options.yes !== true) {
            // The key whose code is shown now is the one that --yes is said of later.
            if (pin.trust === "unpinned") expectBody(await daemon.trustPeer(name, { pubkey: pin.pubkey }));
            return { value: pin, text: hint(shell, describe(pin)) };
          }
          if (pin.trust !== "pinned" && pin.trust !== "verified") throw nothingCompared(name, pin.trust);
          const value = expectBody(await daemon.verifyPeer(name, { pubkey: pin.pubkey }));
          return { value, text: `The key ${value.fingerprint} of ${name} is verified.` };
        }),
      ),
    );
  examples(command, "claudemesh peer verify bob", "claudemesh peer verify bob --yes");
}

function nothingCompared(name: string, trust: string): MeshError {
  const first = trust === "changed" ? "trust" : "verify";
  const why =
    trust === "changed" ? "has another key than the one that is pinned" : "is not pinned, so no code was compared";
  return new MeshError("peer_key_changed", `${name} ${why}; first: claudemesh peer ${first} ${name}`, { name });
}

function describe(pin: {
  readonly name: string;
  readonly code: string;
  readonly trust: string;
  readonly fingerprint: string;
  readonly current_fingerprint: string | null;
}): string {
  const { name, code, trust, fingerprint, current_fingerprint: current } = pin;
  const key =
    trust === "changed" ? `was ${fingerprint} and is now ${current ?? "unknown"}` : `is ${fingerprint}, ${trust}`;
  return [
    `The key of ${name} ${key}. The code of both keys:`,
    "",
    `  ${code}`,
    "",
    `Let ${name} run \`claudemesh peer verify\` with your name and read the code to you, not over this mesh.`,
    `If it is the same: claudemesh peer verify ${name} --yes`,
  ].join("\n");
}

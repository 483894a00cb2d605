// `claudemesh peers` and `claudemesh peer …`: the members that are connected, and the keys behind the names that one
// writes to.

import type { DaemonClient, KnownPeer } from "@claudemesh/client/daemon";
import { MeshError } from "@claudemesh/protocol/errors";
import type { Command } from "commander";
import { type Commands, type CommonOptions, examples, run, withMesh } from "../command.ts";
import { withDaemon } from "../daemon/daemon-access.ts";
import { expectBody } from "../exit-codes.ts";
import { hint } from "../hints.ts";
import { formatTable } from "../output/table.ts";
import { pathsFor, type Shell } from "../shell.ts";

export const commands = {
  peers: definePeers,
  "peer trust": defineTrust,
  "peer verify": defineVerify,
} satisfies Commands;

const peerHeader = ["NAME", "KEY IS", "STATUS", "SUMMARY", "FINGERPRINT"];

/** Members that are connected now, with what they say about themselves. */
function definePeers(command: Command, shell: Shell): void {
  withMesh(command).action((options: CommonOptions) =>
    run(shell, options, async () => {
      const items = await withDaemon(shell, pathsFor(shell, options), readPeers);
      const rows = items.map((peer) => [peer.name, peer.trust, peer.status, peer.summary, peer.fingerprint]);
      const table = formatTable(peerHeader, rows, shell.columns);
      return { value: { items }, text: rows.length === 0 ? "No member is connected." : table };
    }),
  );
  examples(command, "claudemesh peers", "claudemesh peers --json");
}

async function readPeers(daemon: DaemonClient): Promise<KnownPeer[]> {
  const peers: KnownPeer[] = [];
  let cursor: string | undefined;
  do {
    const page = expectBody(await daemon.peers({ limit: 1000, ...(cursor === undefined ? {} : { cursor }) }));
    peers.push(...page.items);
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined);
  return peers;
}

/** A member's key is another one, and that is right: sends to its name go there from now on. */
function defineTrust(command: Command, shell: Shell): void {
  withMesh(command)
    .argument("<name>", "the member's name")
    .action((given: string, options: CommonOptions) =>
      run(shell, options, () =>
        withDaemon(shell, pathsFor(shell, options), async (daemon) => {
          const name = given.replace(/^@/, "");
          const before = expectBody(await daemon.pin(name));
          const pubkey = before.current_pubkey;
          if (pubkey === null) {
            const message = `${name} has ${before.fingerprint} here, and no member, or more than one, has the name now.`;
            throw new MeshError("destination_not_found", message, { name });
          }
          const value = expectBody(await daemon.trustPeer(name, { pubkey }));
          const was = before.trust === "changed" ? ` (it was ${before.fingerprint})` : "";
          const text = `Messages to ${name} go to the key ${value.fingerprint}${was}. Compare it: claudemesh peer verify ${name}`;
          return { value, text: hint(shell, text) };
        }),
      ),
    );
  examples(command, "claudemesh peer trust bob");
}

/** Shows the code that both members compare by voice, and with --yes marks the key as verified. */
function defineVerify(command: Command, shell: Shell): void {
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
            return { value: pin, text: hint(shell, describePin(pin)) };
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

function describePin(pin: {
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

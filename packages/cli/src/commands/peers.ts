// `claudemesh peers`: members that are connected now, with what they say about themselves.
import type { DaemonClient, KnownPeer } from "@claudemesh/client/daemon";
import type { Command } from "commander";
import { type CommonOptions, examples, run, withMesh } from "../command.ts";
import { withDaemon } from "../daemon-access.ts";
import { expectBody } from "../exit-codes.ts";
import { formatTable } from "../output/table.ts";
import { pathsFor, type Shell } from "../shell.ts";

const peerHeader = ["NAME", "KEY IS", "STATUS", "SUMMARY", "FINGERPRINT"];

export function define(command: Command, shell: Shell): void {
  withMesh(command).action((options: CommonOptions) =>
    run(shell, options, async () => {
      const items = await withDaemon(shell, pathsFor(shell, options), readPeers);
      const rows = items.map((peer) => [peer.name, peer.trust, peer.status, peer.summary, peer.fingerprint]);
      const table = formatTable(peerHeader, rows, shell.columns);
      return { value: { items }, text: rows.length === 0 ? "Nobody is connected." : table };
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

// Lists of a mesh, page by page to their end: through the daemon, or from the broker where no daemon runs and the home holds
// the keys, and then it says so.
import { type DaemonAnswer, type DaemonClient, DaemonUnreachable, type Page } from "@claudemesh/client/daemon";
import type { MeshPaths } from "@claudemesh/client/home";
import type { OperationName } from "@claudemesh/protocol/wire/operations";
import { withDaemon } from "../daemon/daemon-access.ts";
import { expectBody } from "../exit-codes.ts";
import type { Shell } from "../shell.ts";
import { asMember } from "./member.ts";

type ListQuery = { readonly limit: number; readonly cursor?: string };

export type MeshList<Item> = {
  readonly fromDaemon: (daemon: DaemonClient, query: ListQuery) => Promise<DaemonAnswer<Page<Item>>>;
  readonly operation: OperationName;
  /** Beside the position in the list, for the broker. */
  readonly input?: object;
};

const pageItems = 1_000;

export async function readMeshList<Item>(shell: Shell, paths: MeshPaths, list: MeshList<Item>): Promise<Item[]> {
  try {
    return await withDaemon(shell, paths, (daemon) =>
      readPages(async (query) => expectBody(await list.fromDaemon(daemon, query))),
    );
  } catch (error) {
    if (!(error instanceof DaemonUnreachable) || error.sent) throw error;
  }
  shell.err("No daemon is running here; the broker was asked directly.");
  return asMember(shell, paths, (call) =>
    readPages(async ({ limit, cursor: after }) => {
      const input = { limit, ...list.input, ...(after === undefined ? {} : { after }) };
      return (await call(list.operation, input)) as Page<Item>;
    }),
  );
}

/** Bounded by what a mesh can hold, not by us. A page may be short, or empty, and not the last. */
async function readPages<Item>(read: (query: ListQuery) => Promise<Page<Item>>): Promise<Item[]> {
  const items: Item[] = [];
  let cursor: string | undefined;
  do {
    const page = await read({ limit: pageItems, ...(cursor === undefined ? {} : { cursor }) });
    items.push(...page.items);
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined);
  return items;
}

/** Numbers are counted up to a bound. */
export function showCount(count: number): string {
  return count >= 10_000 ? "10000+" : String(count);
}

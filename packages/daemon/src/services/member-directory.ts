// The members of the mesh, by name and by key: the broker's last list, in memory and on disk. The broker is asked at every
// hello and when a name is unknown, one question at a time, however many callers wait for it.
import { limits } from "@claudemesh/protocol/messages/limits";
import { isNewMemberName, isPublicKey } from "@claudemesh/protocol/messages/names";
import type { BrokerLink, Log, MemberEntry, MembersStore } from "../ports.ts";

export type MemberDirectory = {
  readonly keysOf: (name: string) => readonly string[];
  readonly nameOf: (pubkey: string) => string | undefined;
  /** Whether another member has the name, in whatever case: in a mesh from before names were unique, or where a broker lies. */
  readonly isAnothers: (name: string, pubkey: string) => boolean;
  /** True once the broker's whole list, asked for after this call, is known. */
  readonly refresh: () => Promise<boolean>;
};

export type MemberDirectoryPorts = {
  readonly store: MembersStore;
  readonly link: Pick<BrokerLink, "request">;
  readonly log: Log;
  readonly requestTimeoutMs: number;
  /** The whole list came, and may differ from the one before. */
  readonly onListed?: () => void;
};

export function createMemberDirectory(ports: MemberDirectoryPorts): MemberDirectory {
  let members = indexMembers(ports.store.load());
  let running: Promise<boolean> | undefined;
  let next: Promise<boolean> | undefined;

  const ask = async (): Promise<boolean> => {
    const listed = await listMembers(ports);
    if (listed === undefined) return false;
    const change = differenceOf(members.names, listed);
    members = indexMembers(listed);
    ports.onListed?.();
    if (change.put.length + change.remove.length > 0) await ports.store.change(change);
    return true;
  };
  const start = (): Promise<boolean> => {
    running = ask()
      .catch((error: unknown) => {
        ports.log.warn({ event: "member_list_failed", err: error }, "the member list could not be kept");
        return false;
      })
      .finally(() => {
        running = undefined;
      });
    return running;
  };
  return {
    keysOf: (name) => members.keys.get(name) ?? [],
    nameOf: (pubkey) => members.names.get(pubkey),
    isAnothers: (name, pubkey) => members.holders.get(name.toLowerCase())?.some((key) => key !== pubkey) ?? false,
    // A list that was asked for earlier may lack a member that joined since, so callers that come now share the next one.
    refresh: () => {
      if (running === undefined) return start();
      next ??= running.then(() => {
        next = undefined;
        return start();
      });
      return next;
    },
  };
}

type MemberIndex = {
  readonly names: ReadonlyMap<string, string>;
  readonly keys: ReadonlyMap<string, readonly string[]>;
  /** The same, by the name in lower case. */
  readonly holders: ReadonlyMap<string, readonly string[]>;
};

function indexMembers(entries: readonly MemberEntry[]): MemberIndex {
  const names = new Map<string, string>();
  const keys = new Map<string, string[]>();
  const holders = new Map<string, string[]>();
  for (const { pubkey, name } of entries) {
    names.set(pubkey, name);
    addTo(keys, name, pubkey);
    addTo(holders, name.toLowerCase(), pubkey);
  }
  return { names, keys, holders };
}

function addTo(lists: Map<string, string[]>, name: string, pubkey: string): void {
  const list = lists.get(name);
  if (list === undefined) lists.set(name, [pubkey]);
  else list.push(pubkey);
}

/** No mesh has so many members. Without a bound a broker whose list has no end would fill this host's memory. */
const pagesMax = 200;

/** Every page, or undefined when one did not come: half a list would make members vanish. */
async function listMembers({ link, requestTimeoutMs }: MemberDirectoryPorts): Promise<MemberEntry[] | undefined> {
  const entries: MemberEntry[] = [];
  let after: string | undefined;
  for (let pages = 0; pages < pagesMax; pages++) {
    const input = { limit: limits.pageItems, ...(after === undefined ? {} : { after }) };
    const outcome = await link.request("members.list", input, { timeoutMs: requestTimeoutMs });
    if (outcome.type !== "answered" || outcome.status !== 200) return undefined;
    const page = readMembersPage(outcome.body);
    if (page === undefined || page.items.length > limits.pageItems) return undefined;
    entries.push(...page.items);
    if (page.nextCursor === undefined) return entries;
    // A cursor that does not move on leads nowhere.
    if (page.nextCursor === after) return undefined;
    after = page.nextCursor;
  }
  throw new Error(`the broker's list of members does not end after ${pagesMax} pages`);
}

function readMembersPage(
  body: unknown,
): { readonly items: MemberEntry[]; readonly nextCursor: string | undefined } | undefined {
  if (typeof body !== "object" || body === null) return undefined;
  const { items, next_cursor } = body as Record<string, unknown>;
  if (!Array.isArray(items)) return undefined;
  return {
    items: items.filter(isMemberEntry).map(({ pubkey, name }) => ({ pubkey, name })),
    nextCursor: typeof next_cursor === "string" ? next_cursor : undefined,
  };
}

function isMemberEntry(value: unknown): value is MemberEntry {
  const { pubkey, name } = (value ?? {}) as Record<string, unknown>;
  return typeof pubkey === "string" && isPublicKey(pubkey) && typeof name === "string" && isNewMemberName(name);
}

function differenceOf(
  known: ReadonlyMap<string, string>,
  listed: readonly MemberEntry[],
): { put: MemberEntry[]; remove: string[] } {
  const put = listed.filter(({ pubkey, name }) => known.get(pubkey) !== name);
  const listedKeys = new Set(listed.map(({ pubkey }) => pubkey));
  const remove = [...known.keys()].filter((pubkey) => !listedKeys.has(pubkey));
  return { put, remove };
}

// What is parked in a queue, all of it: a page ends where its limit, or what fits an answer, is reached.
import type { DaemonClient, ParkedMessage } from "@claudemesh/client/daemon";
import { expectBody } from "./exit-codes.ts";

export async function readParked(daemon: Pick<DaemonClient, "parked">, queue: string): Promise<ParkedMessage[]> {
  const items: ParkedMessage[] = [];
  let after: number | undefined;
  do {
    const page = expectBody(await daemon.parked(queue, { limit: 1000, ...(after === undefined ? {} : { after }) }));
    items.push(...page.items);
    after = page.next_after ?? undefined;
  } while (after !== undefined);
  return items;
}

// Reading lists of a space to their end, page by page.
import type { BrokerCall } from "@claudemesh/client/broker";
import type { Entity } from "./space-access.ts";

type Page<Item> = { readonly items: readonly Item[]; readonly nextCursor: string | null };

const pageItems = 1_000;

/** Every item; bounded by what a mesh can hold. */
export async function readPages<Item>(
  call: BrokerCall,
  operation: "space.list" | "space.branches",
  input: object,
): Promise<Item[]> {
  const items: Item[] = [];
  let position: string | null | undefined;
  do {
    const more = position === undefined ? {} : { after: position };
    const page = (await call(operation, { ...input, ...more, limit: pageItems })) as Page<Item>;
    items.push(...page.items);
    position = page.nextCursor;
  } while (position !== null);
  return items;
}

/** All of it as of one seq, which the first page finds. */
export async function listEntities(
  call: BrokerCall,
  query: { readonly space: string; readonly prefix: string; readonly branch?: string; readonly atSeq?: number },
): Promise<{ readonly seq: number; readonly items: readonly Entity[] }> {
  const items: Entity[] = [];
  let { atSeq } = query;
  let cursor: string | null | undefined;
  do {
    const moment = { ...(atSeq !== undefined && { atSeq }), ...(typeof cursor === "string" && { cursor }) };
    const page = (await call("space.query", { ...query, ...moment, limit: pageItems })) as Page<Entity> & {
      seq: number;
    };
    items.push(...page.items);
    atSeq = page.seq;
    cursor = page.nextCursor;
  } while (cursor !== null);
  return { seq: atSeq, items };
}

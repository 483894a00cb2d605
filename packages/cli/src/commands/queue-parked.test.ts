import type { DaemonClient, ParkedMessage } from "@claudemesh/client/daemon";
import { expect, test } from "vitest";
import { Refused } from "../exit-codes.ts";
import { readParked } from "./queue.ts";

const parkedAt = (historyId: number) =>
  ({ history_id: historyId, broker_message_id: `b${historyId}` }) as ParkedMessage;

test("what is parked is read to its end, page by page, also past a page without any", async () => {
  const pages = new Map([
    [undefined, { items: [parkedAt(1), parkedAt(4)], next_after: 4 }],
    [4, { items: [], next_after: 9 }],
    [9, { items: [parkedAt(10)], next_after: null }],
  ]);
  const parked: DaemonClient["parked"] = async (_queue, query) => {
    const page = pages.get(query?.after);
    if (page === undefined) throw new Error(`no request was expected for what is after ${query?.after}`);
    return { status: 200, body: page };
  };
  expect((await readParked({ parked }, "builds")).map((item) => item.history_id)).toEqual([1, 4, 10]);
});

test("a refusal on the way is the command's, and no part of the list is shown for the whole", async () => {
  const body = { error: "busy", message: "Too much at once.", details: {} };
  let pages = 0;
  const parked = (async () => {
    pages += 1;
    return pages === 1 ? { status: 200, body: { items: [parkedAt(1)], next_after: 1 } } : { status: 503, body };
  }) as unknown as DaemonClient["parked"];
  await expect(readParked({ parked }, "builds")).rejects.toThrow(Refused);
});

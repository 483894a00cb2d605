import { describe, expect, it } from "vitest";
import { deliver, delivery } from "../testing/deliveries.ts";
import { EventReader } from "../testing/event-reader.ts";
import { startTestDaemon } from "../testing/test-daemon.ts";

describe("GET /v1/inbox/search", () => {
  it("shows matching messages as the inbox does, page by page, also after a restart", async () => {
    const first = await startTestDaemon();
    const reader = await EventReader.open(first);
    deliver(
      first.link,
      delivery(1, { body: "the build is green" }),
      delivery(2, { body: "lunch?" }),
      delivery(3, { body: "another green build" }),
    );
    await reader.untilCount("message", 3);
    const search = async (daemon: typeof first, query: string) =>
      (await daemon.call("GET", `/v1/inbox/search?${query}`)).body;
    const { items } = (await first.call("GET", "/v1/inbox")).body;
    expect(await search(first, "q=green%20build")).toEqual({ items: [items[0], items[2]], next_cursor: null });
    await first.daemon.stop();
    const second = await startTestDaemon({ at: first });
    const page = await search(second, "q=gree*&limit=1");
    expect(page).toEqual({ items: [items[0]], next_cursor: items[0].id });
    expect(await search(second, `q=gree*&limit=1&cursor=${page.next_cursor}`)).toEqual({
      items: [items[2]],
      next_cursor: null,
    });
    expect(await search(second, `q=${encodeURIComponent('"green" AND (')}`)).toEqual({ items: [], next_cursor: null });
    expect(await search(second, "q=")).toEqual({ items: [], next_cursor: null });
    expect(await search(second, "limit=1")).toMatchObject({ error: "invalid_request", field: "q" });
    expect(await search(second, "q=x&topic=y")).toMatchObject({ error: "unknown_field" });
  });
});

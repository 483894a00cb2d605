import { describe, expect, it } from "vitest";
import { ManualClock } from "../testing/manual-clock.ts";
import { settle } from "../testing/scripted-link.ts";
import { openTestStores, recordingLog } from "../testing/test-stores.ts";
import { EventHub } from "./event-hub.ts";

/** A reader that takes what the test lets it take. */
class ScriptedReader {
  texts: string[] = [];
  takes = true;
  state: "open" | "ended" | "destroyed" = "open";
  readonly sink = {
    write: (text: string) => {
      this.texts.push(text);
      return this.takes;
    },
    end: () => {
      this.state = "ended";
    },
    destroy: () => {
      this.state = "destroyed";
    },
  };

  get events(): { kind: string; id: string; data: Record<string, unknown> }[] {
    return this.texts.flatMap((text) => {
      const fields = /^event: (.*)\nid: (.*)\ndata: (.*)\n\n$/.exec(text);
      if (fields === null) return [];
      return [{ kind: fields[1] ?? "", id: fields[2] ?? "", data: JSON.parse(fields[3] ?? "") }];
    });
  }

  of(kind: string) {
    return this.events.filter((event) => event.kind === kind);
  }
}

async function setUp() {
  const clock = new ManualClock();
  const { inbox } = await openTestStores(clock);
  let watchers = 0;
  const hub = new EventHub({
    inbox,
    show: ({ history_id }) => ({ history_id }),
    watchOutbox: () => {
      watchers++;
      return () => {
        watchers--;
      };
    },
    linkStatus: () => ({ state: "connecting" }),
    clock,
    log: recordingLog(),
    maxStreams: 2,
  });
  const open = () => {
    const reader = new ScriptedReader();
    return { reader, stream: hub.open(undefined, () => reader.sink) };
  };
  const arrive = async (historyId: number) => {
    const message = {
      clientMessageId: `c-${historyId}`,
      brokerMessageId: "b",
      historyId,
      topic: undefined,
      senderPubkey: "",
      senderName: undefined,
      priority: "next" as const,
      meta: "",
      replyToId: undefined,
      acceptedAt: 1,
      sealed: false,
      fromAgent: undefined,
      toAgent: undefined,
      unreadable: undefined,
      restored: false,
      body: new Uint8Array(10),
    };
    await inbox.insert(message, clock.nowMs());
    hub.messageStored(10);
    await settle(2);
  };
  return { clock, hub, open, arrive, watchers: () => watchers };
}

const outboxChange = { id: "o", client_message_id: "c".repeat(1_000), status: "done" };

describe("a reader that takes nothing", () => {
  it("gets what waited, in its order, once it takes again", async () => {
    const { hub, open, arrive } = await setUp();
    const { reader, stream } = open();
    reader.takes = false;
    hub.publish("outbox", { n: 1 });
    hub.publish("outbox", { n: 2 });
    hub.publish("outbox", { n: 3 });
    await arrive(1);
    expect(reader.of("outbox").map(({ data }) => data.n)).toEqual([1]);
    expect(reader.of("message")).toEqual([]);
    reader.takes = true;
    stream.drained();
    await settle();
    expect(reader.of("outbox").map(({ data }) => data.n)).toEqual([1, 2, 3]);
    expect(reader.of("message").map(({ data }) => data.history_id)).toEqual([1]);
  });

  it("learns how many events it lost and where messages resume, when more than a mebibyte happened", async () => {
    const { clock, hub, open, arrive } = await setUp();
    const { reader, stream } = open();
    await arrive(1);
    const position = reader.of("message")[0]?.id;
    reader.takes = false;
    hub.publish("outbox", outboxChange);
    for (let count = 0; count < 990; count++) hub.publish("outbox", outboxChange);
    expect(reader.state).toBe("open");
    for (let count = 0; count < 100; count++) hub.publish("outbox", outboxChange);
    expect(reader.state).toBe("ended");
    const [lagged] = reader.of("lagged");
    expect(lagged?.id.split(".")[0]).toBe(position);
    expect(lagged?.data.resume_after).toBe(lagged?.id);
    const lost = lagged?.data.events_lost as number;
    expect(lost).toBeGreaterThan(990);
    expect(lost).toBeLessThan(1_090);
    const written = reader.texts.length;
    hub.publish("outbox", outboxChange);
    await arrive(2);
    stream.drained();
    expect(reader.texts).toHaveLength(written);
    clock.advance(29_999);
    expect(reader.state).toBe("ended");
    clock.advance(1);
    expect(reader.state).toBe("destroyed");
  });

  it("counts among the readers until it is gone, and is not cut off once it is", async () => {
    const { clock, hub, open } = await setUp();
    const { reader, stream } = open();
    open();
    reader.takes = false;
    for (let count = 0; count < 1_100; count++) hub.publish("outbox", outboxChange);
    expect(reader.state).toBe("ended");
    expect(open).toThrow(expect.objectContaining({ code: "too_many_streams" }));
    stream.closed();
    clock.advance(60_000);
    expect(reader.state).toBe("ended");
    expect(open).not.toThrow();
  });

  it("hears no heartbeat on top of what waits", async () => {
    const { clock, hub, open } = await setUp();
    const { reader } = open();
    reader.takes = false;
    hub.publish("outbox", outboxChange);
    const written = reader.texts.length;
    clock.advance(60_000);
    expect(reader.texts).toHaveLength(written);
  });
});

describe("the outbox", () => {
  it("is watched while there are readers of events, and not longer", async () => {
    const { hub, open, watchers, clock } = await setUp();
    expect(watchers()).toBe(0);
    const [first, second] = [open(), open()];
    expect(watchers()).toBe(1);
    first.stream.closed();
    expect(watchers()).toBe(1);
    second.stream.closed();
    expect(watchers()).toBe(0);
    expect(clock.nextTimerInMs).toBeUndefined();
    open();
    expect(watchers()).toBe(1);
    hub.close();
    expect(watchers()).toBe(0);
    expect(open).toThrow(expect.objectContaining({ code: "stopping" }));
  });
});

// How much room a peer gets on a socket before it has said who it is, and after its connection was refused.
import { once } from "node:events";
import { limits } from "@claudemesh/protocol/messages/limits";
import { afterEach, describe, expect, test, vi } from "vitest";
import { createTestMesh, startTestBroker } from "../../../../tests/support/broker-harness.ts";
import { RawPeer } from "../../../../tests/support/raw-peer.ts";

afterEach(() => {
  vi.useRealTimers();
});

describe("a frame", () => {
  test("of a peer that has not said who it is may have 8 KiB, and no more", async () => {
    const broker = await startTestBroker();
    const alice = await createTestMesh(broker);
    const peer = await RawPeer.dial(broker.url, alice.meshId);
    const hello = JSON.stringify({ ...peer.helloOf(alice, "client"), type: "hello", id: 1 });
    peer.sendText(hello.padEnd(limits.helloFrameBytes));
    expect((await peer.next((frame) => frame.type === "reply")).status).toBe(200);
    const wide = await RawPeer.dial(broker.url);
    wide.sendText(" ".repeat(limits.helloFrameBytes + 1));
    expect(await wide.closed).toEqual({ code: 1009, reason: "too large before the hello" });
  });

  test("of a peer that has not said who it is ends the connection before it has come whole", async () => {
    const broker = await startTestBroker();
    const peer = await RawPeer.dial(broker.url);
    const raw = peer.stream;
    raw.on("error", () => undefined);
    const header = Buffer.from([0x81, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    header.writeBigUInt64BE(BigInt(limits.largeFrameBytes), 2);
    raw.write(header);
    // A little of what it announced, and the connection is over without the rest.
    raw.write(Buffer.alloc(limits.helloBytes, "x"));
    await peer.closed;
    expect((await fetch(`${broker.url}/healthz`)).status).toBe(200);
  });
});

test("a peer that does not answer a close frame is cut off after 10 s", async () => {
  const broker = await startTestBroker();
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const peer = await RawPeer.dial(broker.url);
  // Answers nothing by itself: what it reads goes past its WebSocket.
  const raw = peer.stream;
  raw.removeAllListeners("data");
  const heard: Buffer[] = [];
  raw.on("data", (chunk) => heard.push(chunk));
  peer.sendText("nonsense");
  const closeFrame = () => Buffer.concat(heard).toString("latin1");
  await expect.poll(closeFrame).toContain("invalid_json");
  const gone = once(raw, "close");
  vi.advanceTimersByTime(10_000);
  await gone;
});

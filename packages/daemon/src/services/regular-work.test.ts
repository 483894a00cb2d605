import type { LinkStatus } from "@claudemesh/client/link-contract";
import { describe, expect, it } from "vitest";
import { recordingLog } from "../testing/test-stores.ts";
import { createRegularWork } from "./regular-work.ts";

function setUp(state: "online" | "connecting", rebuild: () => Promise<boolean> = async () => true) {
  const done: string[] = [];
  const log = recordingLog();
  const work = createRegularWork({
    noticeSleep: () => done.push("noticed"),
    expiry: {
      sweep: async () => {
        done.push("swept");
      },
    },
    rebuild: {
      run: () => {
        done.push("rebuilt");
        return rebuild();
      },
    },
    linkStatus: () => ({ state }) as LinkStatus,
    keepHouse: async () => {
      done.push("kept house");
    },
    log,
  });
  return { done, log, beat: (number: number) => work(number, () => false) };
}

describe("a beat", () => {
  it("goes on with a rebuild that stopped while the link stayed up", async () => {
    const { beat, done } = setUp("online");
    await beat(1);
    expect(done).toEqual(["noticed", "rebuilt", "swept"]);
  });

  it("asks for nothing while the broker is away, and puts old rows away now and then", async () => {
    const { beat, done } = setUp("connecting");
    await beat(60);
    expect(done).toEqual(["noticed", "swept", "kept house"]);
  });

  it("ends old rows although a rebuild fails", async () => {
    const { beat, done, log } = setUp("online", () => Promise.reject(new Error("the disk refuses")));
    await beat(1);
    expect(done).toContain("swept");
    expect(log.events()).toEqual(["background_failed"]);
  });
});

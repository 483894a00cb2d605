import type { LinkStatus } from "@claudemesh/client/internal/link-contract";
import { describe, expect, it } from "vitest";
import { recordingLog } from "../testing/test-stores.ts";
import { runRound } from "./periodic-tasks.ts";

function setUp(state: "online" | "connecting", rebuild: () => Promise<boolean> = async () => true) {
  const done: string[] = [];
  const log = recordingLog();
  const ports = {
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
    applyRetention: async () => {
      done.push("applied retention");
    },
    log,
  };
  return { done, log, run: (round: number) => runRound(ports, round, () => false) };
}

describe("a round of the periodic tasks", () => {
  it("resumes a rebuild that stopped while the link stayed up", async () => {
    const { run, done } = setUp("online");
    await run(1);
    expect(done).toEqual(["noticed", "rebuilt", "swept"]);
  });

  it("asks for nothing while the broker is away, and applies retention once in sixty rounds", async () => {
    const { run, done } = setUp("connecting");
    await run(60);
    expect(done).toEqual(["noticed", "swept", "applied retention"]);
  });

  it("ends old rows although a rebuild fails", async () => {
    const { run, done, log } = setUp("online", () => Promise.reject(new Error("the disk refuses")));
    await run(1);
    expect(done).toContain("swept");
    expect(log.events()).toEqual(["background_failed"]);
  });
});

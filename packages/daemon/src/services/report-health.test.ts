import { describe, expect, it } from "vitest";
import { startTestDaemon } from "../testing/test-daemon.ts";

describe("the health of a daemon", () => {
  it("names the fault points that are set in it, and says nothing of them where none are", async () => {
    const faulty = await startTestDaemon({ env: { CLAUDEMESH_FAILPOINTS: "outbox.after_commit@9=error" } });
    expect((await faulty.call("GET", "/v1/health")).body.failpoints).toContain("outbox.after_commit@9=error");
    const sound = await startTestDaemon();
    expect((await sound.call("GET", "/v1/health")).body).not.toHaveProperty("failpoints");
  });
});

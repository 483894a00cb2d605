import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { startTestDaemon } from "../testing/test-daemon.ts";

describe("reading the settings of a running daemon again", () => {
  it("applies what may change, names what waits for a restart, and says nothing where nothing differs", async () => {
    const daemon = await startTestDaemon();
    const reload = () => daemon.call("POST", "/v1/reload");
    expect((await reload()).body).toEqual({ applied: [], needs_restart: [] });
    appendFileSync(daemon.paths.config, "\n[outbox]\nmax_bytes = 262144\n\n[ipc]\nmax_streams = 3\n");
    const wanted = { applied: ["outbox.max_bytes"], needs_restart: ["ipc.max_streams"] };
    expect((await reload()).body).toEqual(wanted);
    expect((await reload()).body).toEqual({ ...wanted, applied: [] });
    expect((await daemon.call("GET", "/v1/health")).body.outbox.max_bytes).toBe(262_144);
    let status = 202;
    for (let n = 0; n < 20 && status === 202; n++) {
      status = (await daemon.send({ to: "#general", message: "x".repeat(30_000) })).status;
    }
    expect(status).toBe(507);
  });

  it("opens and closes the doors that may be open", async () => {
    const daemon = await startTestDaemon({ overrides: { ipc: { tcp_enabled: true } } });
    const port = Number(readFileSync(daemon.paths.httpPort, "utf8"));
    const health = async () => (await daemon.call("GET", "/v1/health", { port })).status;
    const plain = readFileSync(daemon.paths.config, "utf8");
    expect(await health()).toBe(401);
    writeFileSync(daemon.paths.config, `${plain}\n[ipc]\npublic_health_check = true\n`);
    await daemon.call("POST", "/v1/reload");
    expect(await health()).toBe(200);
    writeFileSync(daemon.paths.config, plain);
    await daemon.call("POST", "/v1/reload");
    expect(await health()).toBe(401);
  });

  it("changes nothing where the file cannot be understood", async () => {
    const daemon = await startTestDaemon();
    appendFileSync(daemon.paths.config, "\n[outbox]\nmax_bytes = 262144\nmax_byts = 1\n");
    const refused = await daemon.call("POST", "/v1/reload");
    expect([refused.status, refused.body.error]).toEqual([400, "invalid_request"]);
    expect(refused.body.message).toContain("max_byts");
    expect((await daemon.call("GET", "/v1/health")).body.outbox.max_bytes).toBe(2 ** 31);
  });
});

// A daemon that is killed while it requeues: after the restart there is the row as it was, or the whole requeue, and
// nothing between the two.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { Agent } from "node:http";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";
import { callHttp, startTestDaemon, type TestHome, temporaryHome } from "./testing/test-daemon.ts";

const childPath = fileURLToPath(new URL("./testing/daemon-child.ts", import.meta.url));

/** Accepts one send, then dies in the requeue of its row. */
async function dieRequeueing(at: TestHome, point: string, request: object): Promise<void> {
  const child = spawn(process.execPath, [childPath, at.home, "offline"], {
    env: { ...process.env, CLAUDEMESH_FAILPOINTS: `${point}@2=crash` },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(child, "exit");
  const agent = new Agent({ keepAlive: true });
  onTestFinished(async () => {
    agent.destroy();
    child.kill("SIGKILL");
    await ended;
  });
  await once(child.stdout, "data");
  const call = (path: string, json: object) => callHttp(agent, at.paths.sock, "POST", path, { json });
  const sent = { to: "#general", message: "hello", meta: { a: 1 }, client_message_id: "order-1" };
  expect((await call("/v1/send", sent)).status).toBe(202);
  await expect(call("/v1/outbox/requeue", { id: "order-1", ...request })).rejects.toThrow();
  expect(await ended).toEqual([null, "SIGKILL"]);
}

const requests = [
  ["as it is", { new_client_id: "order-2" }],
  ["patched", { new_client_id: "order-2", patch_payload: { message: "new" }, accept_duplicate: true }],
] as const;

describe("a daemon that dies while it requeues", () => {
  it.each(requests)("a row %s, before the commit, has changed nothing: the retry is the first", async (_, request) => {
    const at = temporaryHome();
    await dieRequeueing(at, "outbox.before_commit", request);
    const daemon = await startTestDaemon({ at });
    const { body } = await daemon.call("GET", "/v1/outbox/order-1");
    expect(body.row).toMatchObject({
      status: "pending",
      superseded_by: null,
      aborted_at: null,
      accept_duplicate: false,
    });
    expect(body.chain).toHaveLength(1);
    expect(daemon.rowCount()).toBe(1);
    const retry = await daemon.call("POST", "/v1/outbox/requeue", { json: { id: "order-1", ...request } });
    expect(retry.status).toBe(200);
  });

  it.each(requests)(
    "a row %s, after the commit, has done all of it: the retry names the successor",
    async (_, request) => {
      const at = temporaryHome();
      await dieRequeueing(at, "outbox.after_commit", request);
      const daemon = await startTestDaemon({ at });
      const { body } = await daemon.call("GET", "/v1/outbox/order-1");
      expect(body.chain).toHaveLength(2);
      const [old, successor] = body.chain;
      expect(old).toMatchObject({ status: "aborted", aborted_by: "operator", superseded_by: successor.id });
      expect(successor).toMatchObject({
        client_message_id: "order-2",
        status: "pending",
        fate: "unsent",
        meta: { a: 1 },
      });
      const retry = await daemon.call("POST", "/v1/outbox/requeue", { json: { id: "order-1", ...request } });
      expect([retry.status, retry.body.error, retry.body.successor.outbox_id]).toEqual([
        409,
        "not_requeueable",
        successor.id,
      ]);
      daemon.link.goOnline();
      const { input } = await daemon.link.requested("send");
      const message = "patch_payload" in request ? request.patch_payload.message : "hello";
      expect(input).toMatchObject({ client_message_id: "order-2", body: message });
    },
  );
});

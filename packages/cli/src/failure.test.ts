import { readFileSync } from "node:fs";
import { join } from "node:path";
import { DaemonUnreachable } from "@claudemesh/client/daemon";
import { writeLastRun } from "@claudemesh/client/internal/last-run";
import { MeshError } from "@claudemesh/protocol/errors";
import { describe, expect, it } from "vitest";
import { makeTemporaryFolder } from "../../../tests/support/broker-harness.ts";
import { expectBody, Refused, WrongUsage } from "./exit-codes.ts";
import { failureOf } from "./failure.ts";

const unreachable = (sent: boolean) => new DaemonUnreachable("silence", { sent, timedOut: false });

describe("the documented exit codes", () => {
  it.each([
    [1, new Error("broken")],
    [1, "not even an error"],
    [2, new WrongUsage("not both")],
    [2, Object.assign(new Error("--rate-limit is wrong"), { name: "BrokerConfigError" })],
    [2, new MeshError("invalid_address")],
    [2, new Refused(400, { error: "a_malformed_thing_of_tomorrow", message: "m", retryable: false })],
    [1, new MeshError("webhook_address_refused")],
    [1, new MeshError("forbidden")],
    [1, new Refused(503, { error: "already_running", message: "m", retryable: false })],
    [3, unreachable(false)],
    [3, unreachable(true)],
    [3, new MeshError("broker_unreachable")],
    [3, new Refused(503, { error: "daemon_unreachable", message: "m", retryable: true })],
    [4, new MeshError("idempotency_key_reused")],
    [5, new MeshError("not_found")],
    [6, new MeshError("rate_limited")],
    [6, new Refused(429, { error: "a_code_of_tomorrow", message: "m", retryable: true })],
  ])("%i for %s", (exitCode, error) => {
    expect(failureOf(error).exitCode).toBe(exitCode);
  });

  it("come with a body that says whether the daemon may have acted", () => {
    expect(failureOf(unreachable(false)).body).toMatchObject({ error: "daemon_unreachable", sent: false });
    expect(failureOf(unreachable(true)).body).toMatchObject({ error: "daemon_unreachable", sent: true });
    expect(failureOf(unreachable(false)).body.message).toContain("claudemesh daemon up");
  });

  it("come with why the last daemon ended, and never with a start that would make two daemons end each other", () => {
    const mesh = { mesh: "acme", lastRun: join(makeTemporaryFolder(), "last_run.json") };
    const messageAfter = (reason: string, message: string) => {
      const times = { started_at: 0, ended_at: 1 };
      writeLastRun(mesh.lastRun, { state: "ended", version: "1", pid: 1, ...times, reason, message });
      return failureOf(unreachable(false), mesh).body.message;
    };
    expect(failureOf(unreachable(false), mesh).body.message).toContain("claudemesh daemon up");
    expect(messageAfter("stopped", "as asked")).toContain("claudemesh daemon up");
    expect(messageAfter("disk_full", "the disk is full")).toContain("the disk is full");
    const replaced = messageAfter("replaced_by_newer", "another one");
    expect(replaced).toContain("stop the other daemon");
    expect(replaced).not.toMatch(/claudemesh (daemon )?up/);
    expect(failureOf(unreachable(true), mesh).body.message).toContain("may have been carried out");
  });
});

describe("a file that cannot be used", () => {
  it("is named with what is wrong with it and the next step", () => {
    const readAbsent = () => readFileSync("/nowhere/token");
    let thrown: unknown;
    try {
      readAbsent();
    } catch (error) {
      thrown = error;
    }
    expect(failureOf(thrown).body).toMatchObject({
      error: "failed",
      message: "/nowhere/token cannot be used: there is no such file; check the path.",
    });
  });
});

describe("a disk that is full or fails", () => {
  const coded = (code: string) => Object.assign(new Error(`${code}: went wrong, write`), { code });
  const stored = (kind: string) => Object.assign(new Error("no luck"), { name: "StorageError", kind });

  it("says how long to wait where the answer does", () => {
    const { message } = failureOf(new MeshError("rate_limited", undefined, { retry_after_s: 7 })).body;
    expect(message).toMatch(/budget for this window is spent.* Try again in 7 s\.$/);
  });

  it.each([coded("ENOSPC"), coded("EDQUOT"), stored("disk_full"), new Error("outer", { cause: stored("disk_full") })])(
    "is named as full with the next step: %s",
    (error) => {
      expect(failureOf(error)).toMatchObject({
        exitCode: 1,
        body: { error: "insufficient_storage", message: expect.stringMatching(/disk is full.*Make room, then run/) },
      });
    },
  );

  it.each([coded("EIO"), stored("io")])("is no damage to what is stored: %s", (error) => {
    expect(failureOf(error)).toMatchObject({
      exitCode: 1,
      body: { error: "storage_unavailable", message: expect.stringMatching(/The disk failed.*look after the disk/) },
    });
  });
});

describe("an answer", () => {
  it("is its body, or throws the refusal as it was given", () => {
    expect(expectBody({ status: 200, body: { error: "a field", message: "of a good answer" } })).toHaveProperty(
      "error",
    );
    const body = { error: "daemon_busy", message: "later", retryable: true, limit: 64 };
    expect(() => expectBody({ status: 429, body })).toThrow(expect.objectContaining({ status: 429, body }));
  });
});

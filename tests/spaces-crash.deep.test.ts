// A broker on SQLite, killed around the commits of a space that carry messages.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, onTestFinished } from "vitest";
import { BrokerProcess } from "./support/broker-process.ts";
import { createMeshAt } from "./support/brokers.ts";
import { describeSpaceCrashes } from "./support/space-crashes.ts";

describe("a broker on SQLite", () => {
  describeSpaceCrashes(async () => {
    const folder = mkdtempSync(join(tmpdir(), "cm-space-crash-"));
    const store = join(folder, "broker.db");
    const broker = new BrokerProcess(folder, ["--store", `sqlite:${store}`]);
    onTestFinished(async () => {
      await broker.kill();
      rmSync(folder, { recursive: true, force: true });
    });
    await broker.start();
    const adminToken = () => readFileSync(`${store}.admin-token`, "utf8").trim();
    return { broker, adminToken, createMesh: () => createMeshAt(adminToken(), broker, "acme") };
  });
});

// One member asks for as much as it may, and more; the broker goes on answering the others meanwhile.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll } from "vitest";
import { BrokerProcess } from "./support/broker-process.ts";
import { describeBusyMember } from "./support/busy-member.ts";

const folder = mkdtempSync(join(tmpdir(), "cm-busy-"));
const broker = new BrokerProcess(folder, []);
let adminToken = "";
beforeAll(async () => {
  const ready = await broker.start();
  adminToken = readFileSync(ready.admin_token_file, "utf8").trim();
});
afterAll(async () => {
  await broker.kill();
  rmSync(folder, { recursive: true, force: true });
});

describeBusyMember("SQLite", () => ({ broker, adminToken }));

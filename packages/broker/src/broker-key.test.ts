// The key by which members know a broker: made once, private, the same after a restart, and never replaced in silence.
import { chmodSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { decodeInvite } from "@claudemesh/protocol/wire/invite";
import { describe, expect, test } from "vitest";
import { createTestMesh, makeTemporaryFolder, startTestBroker } from "../../../tests/support/broker-harness.ts";
import { brokerKeyOf, ensureBrokerSeedFile, mintBrokerSeed } from "./broker-key.ts";

describe("a broker's key on SQLite", () => {
  test("lies beside the store, for its owner alone, and is the same after a restart", async () => {
    const folder = makeTemporaryFolder();
    const first = await startTestBroker({ folder });
    const path = `${first.storePath}.broker-key`;
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(brokerKeyOf(readFileSync(path, "utf8").trim()).publicKey).toBe(first.brokerKey);
    await first.stop();
    expect((await startTestBroker({ folder })).brokerKey).toBe(first.brokerKey);
    expect((await startTestBroker()).brokerKey).not.toBe(first.brokerKey);
  });

  test("is in every invite", async () => {
    const broker = await startTestBroker();
    const alice = await createTestMesh(broker);
    const { body } = await alice.call("POST", "/invites");
    expect(decodeInvite(String(body.invite)).broker_key).toBe(broker.brokerKey);
  });

  test("that others can read, or that is no key, keeps the broker from starting, and stays as it is", async () => {
    const folder = makeTemporaryFolder();
    const path = join(folder, "broker.db.broker-key");
    const seed = mintBrokerSeed();
    writeFileSync(path, seed, { mode: 0o600 });
    chmodSync(path, 0o644);
    await expect(startTestBroker({ folder })).rejects.toThrow(/chmod 600/);
    chmodSync(path, 0o600);
    for (const text of ["", "not a key", seed.slice(2), seed.toUpperCase().replace(/[0-9]/g, "A")]) {
      writeFileSync(path, text);
      await expect(startTestBroker({ folder })).rejects.toThrow(/put it back from a backup/);
      expect(readFileSync(path, "utf8")).toBe(text);
    }
    writeFileSync(path, seed);
    expect((await startTestBroker({ folder })).brokerKey).toBe(brokerKeyOf(seed).publicKey);
  });

  test("that is made by several at once is one key", () => {
    const path = join(makeTemporaryFolder(), "key");
    const seeds = Array.from({ length: 3 }, () => ensureBrokerSeedFile(path));
    expect(new Set(seeds).size).toBe(1);
  });
});

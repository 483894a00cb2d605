// A daemon whose broker is another host without TLS says so once in its log, and goes on.
import { readFileSync } from "node:fs";
import { readMeshConfig, writeMeshConfig } from "@claudemesh/client/home";
import { describe, expect, it } from "vitest";
import { startTestDaemon, temporaryHome } from "./testing/test-daemon.ts";

describe("a daemon whose broker's address is", () => {
  it.each([
    ["ws://mesh.example.org:7600", 1],
    ["wss://mesh.example.org:7600", 0],
    ["ws://127.0.0.1:7600", 0],
  ])("%s warns %i times", async (broker, warnings) => {
    const at = temporaryHome();
    writeMeshConfig(at.paths, { ...readMeshConfig(at.paths), broker });
    await startTestDaemon({ at });
    expect(readFileSync(at.paths.log, "utf8").split('"event":"no_tls"')).toHaveLength(warnings + 1);
  });
});

// A send without a daemon keeps to the same pins as the daemon, in both directions (MSG-33).
import { describe, expect, it } from "vitest";
import { settle } from "../testing/scripted-link.ts";
import { startTestDaemon, temporaryHome } from "../testing/test-daemon.ts";
import { usePeerKey } from "./use-peer-key.ts";

const [bobKey, otherKey] = ["ab".repeat(32), "cd".repeat(32)];
const changed = expect.objectContaining({ code: "peer_key_changed" });

describe("a name that is used without a daemon", () => {
  it("is pinned by its first use, also where no daemon ever ran", async () => {
    const { paths } = temporaryHome();
    await usePeerKey(paths, "bob", bobKey);
    await usePeerKey(paths, "bob", bobKey);
    await expect(usePeerKey(paths, "bob", otherKey)).rejects.toEqual(changed);
    await usePeerKey(paths, "carol", otherKey);
  });

  it("is pinned for the daemon too, and the other way round", async () => {
    const home = temporaryHome();
    await usePeerKey(home.paths, "bob", bobKey);
    const daemon = await startTestDaemon({ at: home });
    const list = (name: string, pubkey: string) =>
      daemon.link.automatic.set("members.list", () => ({
        type: "answered",
        status: 200,
        body: { items: [{ pubkey, name }] },
      }));
    list("bob", otherKey);
    daemon.link.goOnline();
    await settle();
    expect((await daemon.send({ to: "@bob", message: "x" })).body.error).toBe("peer_key_changed");
    list("carol", daemon.keys.ed25519.public_key);
    expect((await daemon.send({ to: "@carol", message: "x" })).status).toBe(202);
    await daemon.daemon.stop();
    await expect(usePeerKey(home.paths, "carol", otherKey)).rejects.toEqual(changed);
  });
});

// The names that keys are shown by.
import { expect, it } from "vitest";
import { recordingLog } from "../testing/test-stores.ts";
import { PeerPins } from "./peer-pins.ts";

const bob = "b0".repeat(32);
const emptyList = { nameOf: () => undefined, isAnothers: () => false };

it("a former member, whom no list of the broker's has, is shown by the name that it was written to by", () => {
  const pins = new PeerPins({
    store: {
      load: () => [{ name: "bob", pubkey: bob, pinnedAt: 1, verifiedAt: undefined }],
      put: async () => undefined,
    },
    ownPubkey: "a1".repeat(32),
    nowMs: () => 2,
    log: recordingLog(),
    onKeyChanged: () => undefined,
  });
  expect(pins.nameOf(emptyList, bob, undefined)).toBe("bob");
  expect(pins.nameOf(emptyList, "c0".repeat(32), undefined)).toBeUndefined();
});

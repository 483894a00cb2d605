// What a member sends over a connection of its own is sealed, whichever way it goes, once; and where nothing can seal it, it
// does not leave.
import type { AcceptRequest } from "@claudemesh/protocol/messages/accept-request";
import { describe, expect, it } from "vitest";
import { generateMemberKeys, identityOf } from "../keys/member-keys.ts";
import { sealOutgoing } from "./outgoing.ts";
import { loadSealer } from "./seal.ts";

const alice = generateMemberKeys();
const bob = generateMemberKeys();
const identity = identityOf(alice, "mesh");
const dm: AcceptRequest = {
  client_message_id: "m-1",
  destination: { kind: "dm", ref: bob.ed25519.public_key },
  body: "for bob",
  meta: { run: 7 },
};
const topic: AcceptRequest = { client_message_id: "m-2", destination: { kind: "topic", ref: "news" }, body: "for all" };
const commit = (sends: readonly AcceptRequest[], more: object = {}) => ({
  space: "plan",
  commit: { localSeq: 1, operations: [], sends, ...more },
});

async function textOf(request: AcceptRequest): Promise<string> {
  const sealed = Buffer.from(request.body_base64 ?? "", "base64");
  const opened = (await loadSealer(bob)).open({ peer: alice.ed25519.public_key, sealed });
  return new TextDecoder().decode(opened?.body);
}

describe("what a member sends itself", () => {
  it("is sealed where it is a direct message, alone and in a commit, to the same bytes each time", async () => {
    const sealed = (await sealOutgoing(identity, "send", dm)) as AcceptRequest;
    expect(sealed).toMatchObject({ client_message_id: "m-1", envelope_version: "3" });
    expect(sealed).not.toHaveProperty("meta");
    expect(await textOf(sealed)).toBe("for bob");
    expect(await sealOutgoing(identity, "space.commit", commit([topic, dm]))).toEqual(commit([topic, sealed]));
  });

  it("stays as it is where nothing needs sealing, and loads nothing for it", async () => {
    const loading = { loadSealing: () => expect.fail("nothing needs it") };
    const sealed = (await sealOutgoing(identity, "send", dm)) as AcceptRequest;
    const signed = commit([dm], { invocation: { envelope: {}, signature: "" } });
    for (const [operation, input] of [
      ["send", topic],
      ["send", sealed],
      ["send", {}],
      ["history", { after: 1 }],
      ["space.commit", commit([topic, sealed])],
      ["space.commit", { space: "plan", commit: { localSeq: 1, operations: [] } }],
      ["space.commit", {}],
      // Its signature covers what it says now.
      ["space.commit", signed],
    ] as const) {
      expect(await sealOutgoing(loading, operation, input)).toBe(input);
    }
  });

  it("does not leave in clear where there are no keys to seal it with", async () => {
    const refusal = expect.objectContaining({ name: "MeshError", code: "dm_not_sealed" });
    await expect(sealOutgoing({}, "send", dm)).rejects.toEqual(refusal);
    await expect(sealOutgoing({}, "space.commit", commit([topic, dm]))).rejects.toEqual(refusal);
    expect(await sealOutgoing({}, "send", topic)).toBe(topic);
  });
});

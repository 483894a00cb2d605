// Bearer tokens over HTTP: what they show of themselves, when they end, and that they make no others.
import { describe, expect, test } from "vitest";
import { callBroker, startTestPair } from "../../../../tests/support/broker-harness.ts";

describe("tokens", () => {
  test("are shown once, listed without their secret, and dead once revoked", async () => {
    const {
      broker: { url },
      alice,
      bob,
    } = await startTestPair();
    const { token, tokenId } = await alice.newToken("ci");
    const ask = () => callBroker(url, "GET", "/v1/meshes/acme/tokens", { token });
    const listed = await ask();
    expect(JSON.stringify(listed.body)).not.toContain(token.slice(4));
    expect(listed.body.items).toContainEqual({
      token_id: tokenId,
      label: "ci",
      created_at: expect.any(Number),
      revoked_at: null,
    });
    expect((await bob.call("DELETE", `/tokens/${tokenId}`)).status).toBe(404);
    const revoked = await alice.call("DELETE", `/tokens/${tokenId}`);
    expect(revoked).toMatchObject({ status: 200, body: { token_id: tokenId, revoked: true } });
    expect((await alice.call("DELETE", `/tokens/${tokenId}`)).status).toBe(200);
    expect((await ask()).status).toBe(401);
    expect((await alice.call("DELETE", `/tokens/${"0".repeat(36)}`)).body.error).toBe("not_found");
  });

  test("make no tokens, so that one that leaked does not outlive itself in others", async () => {
    const { alice } = await startTestPair();
    const refused = await alice.call("POST", "/tokens", { label: "ci" });
    expect(refused).toMatchObject({ status: 403, body: { error: "forbidden" } });
    expect(refused.body.message).toContain("claudemesh mesh token");
    expect((await alice.call("GET", "/tokens")).body.items).toHaveLength(1);
  });

  test("that were revoked send nothing, new or again, also where they have just been good", async () => {
    const {
      broker: { url },
      alice,
    } = await startTestPair();
    const { token, tokenId } = await alice.newToken("ci");
    const send = (id: string) => {
      const destination = { kind: "dm", ref: alice.pubkey };
      const body = { client_message_id: id, destination, envelope_version: "2", body: "x" };
      return callBroker(url, "POST", "/v1/meshes/acme/messages", { token: String(token), body });
    };
    expect((await send("m1")).status).toBe(201);
    expect((await send("m1")).status).toBe(200);
    await alice.call("DELETE", `/tokens/${tokenId}`);
    for (const id of ["m1", "m2", "m1"]) expect((await send(id)).status).toBe(401);
    expect((await alice.send("m2", alice)).status).toBe(201);
  });
});

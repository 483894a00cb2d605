// What a stranger that tries to join can learn: nothing, and not by how much work a refusal takes either.
import type { JoinRequest } from "@claudemesh/protocol/wire/invite";
import { expect, test, vi } from "vitest";
import { verifySignature } from "../core/credentials.ts";
import { joinMesh } from "./join-mesh.ts";

vi.mock("../core/credentials.ts", async (importOriginal) => {
  const original = await importOriginal<{ readonly verifySignature: typeof verifySignature }>();
  return { ...original, verifySignature: vi.fn(original.verifySignature) };
});

test("a join is refused with one verification of its signature, whether the mesh exists or not", async () => {
  const join = vi.fn();
  const ports = { store: { join, addInvite: vi.fn() }, nowMs: () => 1 };
  const request: JoinRequest = { secret: "cms_x", name: "eve", pubkey: "a".repeat(64), signature: "b".repeat(128) };
  for (const mesh of [undefined, { id: "01890000-0000-7000-8000-000000000001", name: "acme" }]) {
    vi.mocked(verifySignature).mockClear();
    await expect(joinMesh(ports, mesh, request)).rejects.toMatchObject({ code: "invite_refused" });
    expect(verifySignature).toHaveBeenCalledTimes(1);
  }
  expect(join).not.toHaveBeenCalled();
});

// A caller over HTTP with a large body: let in before it is read, and still a member when it is answered.
import { request } from "node:http";
import type { AddressInfo } from "node:net";
import { createHttpServer } from "@claudemesh/http/server";
import { Strangers } from "@claudemesh/http/strangers";
import type { MeshMember } from "@claudemesh/members/ports";
import { expect, onTestFinished, test } from "vitest";
import { registerOperationRoutes } from "./operation-routes.ts";

const meshId = "01890000-0000-7000-8000-000000000001";
const member: MeshMember = {
  mesh: { id: meshId, name: "acme" },
  member: { meshId, pubkey: "a".repeat(64), name: "alice", role: "member", joinedAt: 1, revoked: false },
};

/** Sends the beginning of a body, and its end once the token was asked for; the token is good that first time alone. */
async function sendWhileRevoked(path: string, [beginning, end]: readonly [string, string]) {
  const admitted = Promise.withResolvers<void>();
  let asked = 0;
  const ran: string[] = [];
  const strangers = new Strangers(8);
  const server = createHttpServer({
    maxBodyBytes: 1_024,
    maxInFlight: 8,
    busyCode: "busy",
    strangers,
    onError: () => undefined,
  });
  const findByToken = async () => {
    asked++;
    admitted.resolve();
    return asked === 1 ? member : undefined;
  };
  const run = async (name: string) => {
    ran.push(name);
    return { status: 200, body: {} };
  };
  registerOperationRoutes(server, { members: { findByToken }, strangers }, run, () => undefined);
  await server.listen({ host: "127.0.0.1", port: 0 });
  onTestFinished(() => server.close());
  const { port } = server.server.address() as AddressInfo;
  const answered = Promise.withResolvers<number | undefined>();
  const headers = { authorization: "Bearer cmt_x", "content-type": "application/json" };
  const asking = request(
    { host: "127.0.0.1", port, path: `/v1/meshes/acme${path}`, method: "POST", headers },
    (answer) => {
      answer.resume();
      answered.resolve(answer.statusCode);
    },
  );
  asking.on("error", answered.reject);
  asking.write(beginning);
  await admitted.promise;
  asking.end(end);
  return { status: await answered.promise, ran, asked };
}

test("a member that is revoked while its query is on its way reads nothing", async () => {
  const ended = await sendWhileRevoked("/spaces/plan/query", ["{", '"prefix":""}']);
  expect(ended).toMatchObject({ status: 401, ran: [] });
});

test("a commit is left to its own transaction, which asks for its member", async () => {
  const ended = await sendWhileRevoked("/spaces/plan/commits", ["{", "}"]);
  expect(ended).toMatchObject({ ran: ["space.commit"], asked: 1 });
});

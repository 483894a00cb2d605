// The small world of the suites that ask a real broker about spaces: one broker for a file, a mesh and a space called plan
// for each test, sessions over HTTP and WebSocket in short words.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect } from "vitest";
import {
  createTestMesh,
  type HttpAnswer,
  joinTestMesh,
  type TestMember,
} from "../../../../tests/support/broker-harness.ts";
import type { RawPeer } from "../../../../tests/support/raw-peer.ts";
import { type BrokerFlags, readBrokerConfig } from "../config.ts";
import { type RunningBroker, startBroker } from "../start.ts";

export type WireWorld = { readonly alice: TestMember; readonly bob: TestMember };
export type MakeWorld = () => Promise<WireWorld>;

/** One broker for all tests of the file, and a mesh for each. */
export function meshesOnOneBroker(flagsIn: (folder: string) => BrokerFlags): MakeWorld {
  const folder = mkdtempSync(join(tmpdir(), "claudemesh-spaces-"));
  let broker: RunningBroker;
  let meshes = 0;
  beforeAll(async () => {
    const flags = { listen: "127.0.0.1:0", "log-level": "silent", ...flagsIn(folder) };
    broker = await startBroker(readBrokerConfig(flags, {}, undefined));
  });
  afterAll(async () => {
    await broker?.stop();
    rmSync(folder, { recursive: true, force: true });
  });
  return async () => {
    const alice = await createTestMesh(broker, `mesh-${++meshes}`);
    return { alice, bob: await joinTestMesh(alice, "bob") };
  };
}

type Body = Readonly<Record<string, unknown>>;
export type Held = { readonly sessionId: string; readonly sessionToken: string };

export const at = "/spaces/plan";

export const set = (id: string, value: unknown) => ({ op: "set", id, value: { value } });
export const commitOf = (localSeq: number, operations: readonly object[], more: object = {}) => ({
  localSeq,
  reads: { confirmed: [], pending: [] },
  operations,
  ...more,
});
export const readOf = (id: string, seq: number) => ({ id, path: ["value"], seq });

export async function openOverHttp(member: TestMember, openId = "open-1", more: object = {}): Promise<Held & Body> {
  const { status, body } = await member.call("POST", `${at}/sessions`, { openId, ...more });
  expect(status, JSON.stringify(body)).toBe(200);
  return body as Held & Body;
}

export function commitOverHttp(
  member: TestMember,
  { sessionId, sessionToken }: Held,
  commit: object,
): Promise<HttpAnswer> {
  return member.call("POST", `${at}/commits`, { sessionId, sessionToken, commit });
}

/** A socket with an open session. */
export async function openOverSocket(member: TestMember, openId: string, more: object = {}) {
  const peer = await member.connect("client");
  const { status, body } = await peer.request("space.open", { space: "plan", openId, ...more });
  expect(status, JSON.stringify(body)).toBe(200);
  const held = { sessionId: String(body.sessionId), sessionToken: String(body.sessionToken) };
  return { peer, held, body };
}

export function watchOver(peer: RawPeer, held: Held, more: object) {
  return peer.request("space.watch", { space: "plan", ...held, ...more });
}

export function commitOver(peer: RawPeer, held: Held, commit: object) {
  return peer.request("space.commit", { space: "plan", ...held, commit });
}

export const nextSync = (peer: RawPeer) => peer.next((frame) => frame.type === "sync");

export async function withSpace(make: MakeWorld): Promise<WireWorld> {
  const world = await make();
  expect((await world.alice.call("POST", "/spaces", { name: "plan" })).status).toBe(201);
  return world;
}

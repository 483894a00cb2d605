// 3.7: commits that a member signs, what is stored of the signature, and spaces that accept no others.
import { createHash } from "node:crypto";
import { canonicalJson } from "@claudemesh/protocol/canonical";
import type { JsonValue } from "@claudemesh/protocol/json";
import { invocationBytes } from "@claudemesh/protocol/spaces/invocation";
import { expectAnswer, expectEqual, expectRefusal, expectSameJson, itemsOf } from "../../frame/expect.ts";
import { absent, aText } from "../../frame/pattern.ts";
import { type Scenario, scenario } from "../../frame/scenario.ts";
import { readBody } from "../../transport/http.ts";
import type { BrokerWorld, MeshMember } from "../broker/world.ts";
import { type Commit, expectAccepted, Session, set, spacePath } from "./session.ts";

type Envelope = Readonly<Record<string, JsonValue>>;

const hashOf = (text: string) => createHash("sha256").update(text).digest("hex");

/** The envelope to sign for this commit. */
function envelopeFor(world: BrokerWorld, session: Session, commit: Commit, iss: string): Envelope {
  const { sessionId, space } = session;
  const payloadHash = hashOf(canonicalJson(commit as JsonValue));
  return {
    iss,
    sub: { mesh: world.meshRef.meshId, space },
    cmd: "/memory/commit",
    args: { sessionId, localSeq: commit.localSeq, payloadHash },
  };
}

const sign = ({ keys }: MeshMember, envelope: Envelope) => ({
  envelope,
  signature: keys.sign(invocationBytes(envelope)),
});

function signed(world: BrokerWorld, session: Session, commit: Commit, more: Envelope = {}): Commit {
  const envelope = { ...envelopeFor(world, session, commit, world.alice.pubkey), ...more };
  return { ...commit, invocation: sign(world.alice, envelope) };
}

export const signingScenarios: readonly Scenario<BrokerWorld>[] = [
  scenario(
    "3.7",
    "signed",
    "a signed commit is accepted, and the log links what was signed and the signature",
    async (world) => {
      const session = await Session.inNewSpace(world);
      const commit = signed(world, session, session.build([set("a:1", 1)]), { nonce: "n-1" });
      expectAccepted(await session.send(commit));
      await session.accept([set("a:1", 2)]);
      const log = expectAnswer(await session.get("/log"), 200);
      const [first, second] = itemsOf(log);
      const refs = { status: 200, body: first ?? {}, request: log.request };
      expectAnswer(refs, 200, { invocationRef: aText, authorizationRef: aText, original: { invocation: absent } });
      expectEqual(
        [second?.invocationRef, second?.authorizationRef],
        [null, null],
        "of an unsigned commit",
        log.request,
      );
      const { envelope, signature } = commit.invocation as ReturnType<typeof sign>;
      const contentOf = async (ref: unknown) => {
        const answer = expectAnswer(await session.get(`/invocations/${String(ref)}`), 200, { content: aText });
        expectEqual(answer.body.ref, hashOf(String(answer.body.content)), "the content's hash", answer.request);
        return { content: readBody(String(answer.body.content)), request: answer.request };
      };
      const invocation = await contentOf(first?.invocationRef);
      expectSameJson(invocation.content, envelope, "what was signed", invocation.request);
      const authorization = await contentOf(first?.authorizationRef);
      expectEqual(authorization.content.signature, signature, "the signature", authorization.request);
      expectRefusal(await session.get(`/invocations/${"0".repeat(64)}`), 404);
    },
  ),
  scenario(
    "3.7",
    "bad-signatures",
    "a signature of another, over another commit, or of another form is refused and consumes nothing",
    async (world) => {
      const session = await Session.inNewSpace(world);
      const commit = session.build([set("a:1", 1)]);
      const good = envelopeFor(world, session, commit, world.alice.pubkey);
      const { signature } = sign(world.alice, good);
      const args = good.args as Envelope;
      const wrong: readonly object[] = [
        sign(world.bob, good),
        sign(world.bob, { ...good, iss: world.bob.pubkey }),
        sign(world.alice, { ...good, sub: { mesh: world.meshRef.meshId, space: "other" } }),
        sign(world.alice, { ...good, cmd: "/memory/read" }),
        sign(world.alice, { ...good, args: { ...args, localSeq: 2 } }),
        sign(world.alice, { ...good, args: { ...args, payloadHash: "0".repeat(64) } }),
        sign(world.alice, { ...good, args: { ...args, sessionId: "other" } }),
        { envelope: { ...good, more: 1 }, signature },
        { envelope: good, signature: signature.replace(/^../, (byte) => (byte === "00" ? "11" : "00")) },
        { envelope: good, signature: "x" },
        { envelope: good },
        { envelope: good, signature, colour: 1 },
      ];
      for (const invocation of wrong) {
        const answer = await session.send({ ...commit, invocation });
        expectRefusal(answer, answer.status === 400 ? 400 : 403);
      }
      expectRefusal(await session.verdict(1), 404, "commit_not_found");
      expectAccepted(await session.send({ ...commit, invocation: { envelope: good, signature } }));
    },
  ),
  scenario(
    "3.7",
    "not-part-of-the-payload",
    "another signature around the same commit is the same commit",
    async (world) => {
      const session = await Session.inNewSpace(world);
      const commit = session.build([set("a:1", 1)]);
      const { seq } = expectAccepted(await session.send(signed(world, session, commit))).body;
      for (const again of [commit, signed(world, session, commit, { nonce: "n-2" })]) {
        expectAnswer(await session.send(again), 200, { seq: Number(seq), replayed: true });
      }
    },
  ),
  scenario(
    "3.7",
    "required",
    "an owner may require signatures; then an unsigned commit is refused and consumes nothing",
    async (world) => {
      const { owner } = world;
      const session = await Session.inNewSpace(world);
      const path = spacePath(session.space, "/policy");
      expectRefusal(await world.alice.call("PUT", path, { signedWrites: "required" }), 403, "forbidden");
      expectAnswer(await owner.call("PUT", path, { signedWrites: "required" }), 200, { signedWrites: "required" });
      expectAnswer(await owner.call("PUT", path, { signedWrites: "required" }), 200, { signedWrites: "required" });
      const commit = session.build([set("a:1", 1)]);
      expectRefusal(await session.send(commit), 403, "forbidden");
      expectRefusal(await session.verdict(commit.localSeq), 404, "commit_not_found");
      expectAccepted(await session.send(signed(world, session, commit)));
      expectAnswer(await session.send(commit), 200, { replayed: true });
      for (const wrong of [{ signedWrites: "maybe" }, {}, { signedWrites: "optional", colour: 1 }]) {
        expectRefusal(await owner.call("PUT", path, wrong), 400);
      }
      expectAnswer(await owner.call("PUT", path, { signedWrites: "optional" }), 200, { signedWrites: "optional" });
      expectAccepted(await session.commit([set("a:1", 2)]));
    },
  ),
];

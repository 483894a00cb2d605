// 1.8, 1.10 and 2.5: what the daemon sends to its broker, seen from between the two.
import { closeCodes } from "@claudemesh/protocol/features";
import { paddedLength } from "@claudemesh/protocol/messages/sealed-content";
import { eventually, expectAnswer, expectEqual, expectThat, fieldOf } from "../../frame/expect.ts";
import { absent, aPublicKey, aText } from "../../frame/pattern.ts";
import { type Scenario, scenario } from "../../frame/scenario.ts";
import type { Frame } from "../../transport/socket-peer.ts";
import { fingerprintOf, readVectors } from "../../vectors.ts";
import { untilArrived } from "./arrivals.ts";
import { type DaemonWorld, reconnectBoundMs } from "./world.ts";

type FeatureVectors = { readonly refused: readonly { readonly announced: object; readonly close_code: number }[] };

const sealing: readonly Scenario<DaemonWorld>[] = [
  scenario(
    "1.8",
    "sealed",
    "a direct message leaves sealed: version 3, bytes in base64, no plaintext, no meta and no hash of it",
    async (world) => {
      const { link } = world;
      const secret = world.fresh("the-secret-text");
      const { id } = await world.doneRow({ message: secret, meta: { secret } });
      const text = link.sentByDaemon.find((each) => each.includes(id) && each.includes('"send"'));
      const frame = JSON.parse(text ?? "{}") as Frame & { destination?: { ref: string } };
      const request = `frame send ${id}`;
      expectAnswer({ status: 200, body: frame, request }, 200, {
        envelope_version: "3",
        body_base64: aText,
        meta: absent,
        destination: { kind: "dm", ref: aPublicKey },
      });
      const bytes = Buffer.from(String(frame.body_base64), "base64");
      expectEqual(bytes.length, paddedLength(bytes.length), "bytes, padded to a step", request);
      expectThat(!bytes.includes(secret) && !text?.includes(secret), "no plaintext on the wire", text ?? "", request);
      const plain = { client_message_id: id, destination: frame.destination, body: secret, meta: { secret } };
      expectThat(!text?.includes(fingerprintOf(plain)), "no fingerprint of the plaintext", text ?? "", request);
      expectAnswer(await untilArrived(world, id), 200, { body: secret, meta: { secret }, sealed: true });
    },
  ),
  scenario("1.8", "wire-fingerprint", "the row's wire_fingerprint is that of the sealed envelope", async (world) => {
    const { link } = world;
    const { id, row } = await world.doneRow({ message: "x", meta: { a: 1 } });
    const text = link.sentByDaemon.find((each) => each.includes(id) && each.includes('"send"')) ?? "{}";
    const { type: _type, id: _id, ...send } = JSON.parse(text) as Frame;
    expectEqual(row.wire_fingerprint, fingerprintOf(send), "wire_fingerprint", `GET /v1/outbox/${id}`);
    expectThat(
      row.request_fingerprint !== String(row.wire_fingerprint).slice(0, 16),
      "two fingerprints",
      row,
      `GET /v1/outbox/${id}`,
    );
  }),
  scenario("1.8", "topics-in-clear", "topic messages are not sealed: version 1, one fingerprint", async (world) => {
    const { link } = world;
    const id = world.fresh("clear");
    const clear = { to: `#${await world.topic()}`, message: "in the clear", client_message_id: id };
    expectAnswer(await world.send(clear), 202);
    await world.untilRow(id, { status: "done" });
    const text = link.sentByDaemon.find((each) => each.includes(id) && each.includes('"send"')) ?? "{}";
    const { type: _type, id: _id, ...send } = JSON.parse(text) as Frame;
    expectEqual(send.envelope_version ?? "1", "1", "envelope_version", `frame send ${id}`);
    const { body } = await world.untilRow(id, {});
    expectEqual(
      fieldOf({ status: 200, body, request: "" }, "wire_fingerprint"),
      fingerprintOf(send),
      "wire_fingerprint",
      `GET /v1/outbox/${id}`,
    );
  }),
];

/**
 * The broker announces features with which a daemon must not work; the daemon closes with the code that names the
 * reason.
 */
function closesWith(code: number, name: string, says: string): Scenario<DaemonWorld> {
  return scenario("1.10", name, says, async (world) => {
    const { link } = world;
    world.needRestart();
    link.needKey();
    await world.needBroker();
    const wrong = readVectors<FeatureVectors>("features").refused.find((each) => each.close_code === code);
    link.rule({ announce: () => wrong?.announced ?? {} });
    link.cut();
    try {
      const request = `proof with features ${JSON.stringify(wrong?.announced)}`;
      // A connection that is cut has no code of its own.
      const isOwn = (each: number) => each !== 1005 && each !== 1006;
      const closed = await eventually(
        `a close with ${code}`,
        async () => {
          const own = link.closes.find(isOwn);
          return own === undefined ? { got: link.closes, request } : { found: own };
        },
        reconnectBoundMs,
      );
      expectEqual(closed, code, "the close code", request);
    } finally {
      link.reset();
      await world.comeBack();
    }
  });
}

const negotiation: readonly Scenario<DaemonWorld>[] = [
  scenario("1.10", "hello", "the daemon's hello says kind daemon and its own key", async (world) => {
    const { link } = world;
    await world.needBroker();
    link.sentByDaemon.length = 0;
    link.cut();
    const hello = await eventually(
      "a hello",
      async () => {
        const text = link.sentByDaemon.find((each) => each.includes('"hello"'));
        return text === undefined ? { got: link.sentByDaemon, request: "proof" } : { found: JSON.parse(text) as Frame };
      },
      reconnectBoundMs,
    );
    expectAnswer({ status: 200, body: hello, request: "proof" }, 200, {
      type: "hello",
      kind: "daemon",
      pubkey: await world.ownKey(),
    });
    await world.untilOnline();
  }),
  closesWith(closeCodes.feature_unavailable, "unavailable", "a broker without a needed feature is left with 4010"),
  closesWith(closeCodes.feature_param_invalid, "invalid", "a feature whose parameters make no sense is left with 4011"),
  closesWith(closeCodes.feature_param_below_floor, "below-floor", "a dedupe window below 7 days is left with 4012"),
];

const staying: readonly Scenario<DaemonWorld>[] = [
  scenario(
    "2.5",
    "broker-away",
    "a daemon whose broker is away accepts, answers retries, and drains when it is back",
    async (world) => {
      const { link } = world;
      await world.needBroker();
      link.goAway();
      const sends = Array.from({ length: 5 }, () => ({
        to: "@self",
        message: "x",
        client_message_id: world.fresh("away"),
      }));
      for (const send of sends) {
        expectAnswer(await world.send(send), 202, { duplicate: false });
        expectAnswer(await world.send(send), 202, { duplicate: true });
      }
      link.reset();
      for (const { client_message_id } of sends)
        await world.untilRow(client_message_id, { status: "done" }, reconnectBoundMs);
    },
  ),
  scenario(
    "2.5",
    "cut",
    "a connection that breaks is made again, and what was under way is done once",
    async (world) => {
      const { link } = world;
      await world.needBroker();
      const ids: string[] = [];
      for (let round = 0; round < 3; round++) {
        await world.untilOnline();
        const id = world.fresh("cut");
        ids.push(id);
        link.rule({ up: ({ client_message_id }) => (client_message_id === id ? "cut" : "pass") });
        expectAnswer(await world.send({ to: "@self", message: "x", client_message_id: id }), 202);
        await eventually("the frame is cut", async () =>
          link.sentByDaemon.some((text) => text.includes(id))
            ? { found: true }
            : { got: "no frame", request: `POST /v1/send ${id}` },
        );
        link.rule({});
      }
      for (const id of ids) {
        await world.untilRow(id, { status: "done" }, reconnectBoundMs);
        await untilArrived(world, id);
      }
    },
  ),
];

export const wireScenarios: readonly Scenario<DaemonWorld>[] = [...sealing, ...staying];

/** To be run last: a restarted daemon may have another port. */
export const negotiationScenarios: readonly Scenario<DaemonWorld>[] = negotiation;

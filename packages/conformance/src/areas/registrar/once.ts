// 4.6: `once`: one claim runs an effect; a lease that ends leaves it uncertain, never free.
import { eventually, expectAnswer, expectEqual, expectRefusal, expectSameJson } from "../../frame/expect.ts";
import { aList, aTime } from "../../frame/pattern.ts";
import { type Scenario, scenario } from "../../frame/scenario.ts";
import type { HttpAnswer } from "../../transport/http.ts";
import type { BrokerWorld, Caller } from "../broker/world.ts";

const inputs = "5f".repeat(32);
const resultBytesMax = 65_536;

export class OnceKey {
  readonly #world: BrokerWorld;
  readonly key: string;

  constructor(world: BrokerWorld, key = world.fresh("once")) {
    this.#world = world;
    this.key = key;
  }

  path(action = ""): string {
    return `/once/${encodeURIComponent(this.key)}${action}`;
  }

  claim(by: Caller, claim_id: string, more: object = {}): Promise<HttpAnswer> {
    return by.call("POST", this.path("/claim"), { claim_id, inputs_fingerprint: inputs, lease_s: 60, ...more });
  }

  post(by: Caller, action: "renew" | "record" | "resolve", json: object): Promise<HttpAnswer> {
    return by.call("POST", this.path(`/${action}`), json);
  }

  get(): Promise<HttpAnswer> {
    return this.#world.bob.call("GET", this.path());
  }

  /** Claims for one second and waits until the lease has ended. */
  async letExpire(by: Caller, claim_id: string): Promise<void> {
    expectAnswer(await this.claim(by, claim_id, { lease_s: 1 }), 201, { epoch: 1 });
    await eventually("the state uncertain", async () => {
      const { body, request } = await this.get();
      return body.state === "uncertain" ? { found: true } : { got: body, request };
    });
  }
}

const claims: readonly Scenario<BrokerWorld>[] = [
  scenario(
    "4.6",
    "claim",
    "the first claim gets epoch 1 and a lease; the same claim_id again the same epoch",
    async (world) => {
      const once = new OnceKey(world);
      expectAnswer(await once.get(), 200, { key: once.key, state: "absent", epochs: [] });
      const first = expectAnswer(await once.claim(world.alice, "c-1"), 201, { epoch: 1, lease_until: aTime });
      expectAnswer(await once.claim(world.alice, "c-1"), 201, {
        epoch: 1,
        lease_until: Number(first.body.lease_until),
      });
      const epoch = {
        epoch: 1,
        state: "running",
        claim_id: "c-1",
        holder_pubkey: world.alice.pubkey,
        inputs_fingerprint: inputs,
      };
      expectAnswer(await once.get(), 200, { state: "running", epoch: 1, epochs: [epoch] });
    },
  ),
  scenario(
    "4.6",
    "running",
    "while it runs, every other claim is 409 running, with the end of the lease",
    async (world) => {
      const once = new OnceKey(world);
      const { lease_until } = expectAnswer(await once.claim(world.alice, "c-1"), 201).body;
      const running = { lease_until: Number(lease_until), epoch: 1 };
      expectRefusal(await once.claim(world.alice, "c-2"), 409, "running", running);
      // A claim_id belongs to its member.
      for (const claim of ["c-1", "c-3"]) expectRefusal(await once.claim(world.bob, claim), 409, "running", running);
      expectRefusal(await once.post(world.bob, "resolve", { epoch: 1, outcome: "not_done" }), 409, "running");
    },
  ),
  scenario("4.6", "race", "of many claims at once one gets the key", async (world) => {
    const once = new OnceKey(world);
    const members = [world.alice, world.bob, world.carol];
    const answers = await Promise.all(
      Array.from({ length: 9 }, (_, n) => once.claim(members[n % 3] ?? world.alice, `c-${n}`)),
    );
    expectEqual(
      answers.filter(({ status }) => status === 201).length,
      1,
      "claims that were 201",
      "nine claims at once",
    );
    for (const answer of answers) if (answer.status !== 201) expectRefusal(answer, 409, "running");
  }),
  scenario("4.6", "record", "what the holder records is the result for every caller, for ever", async (world) => {
    const once = new OnceKey(world);
    expectAnswer(await once.claim(world.alice, "c-1"), 201);
    const result = { version: 7, list: [1, null, "x"] };
    const shape = { epoch: 1, outcome: "done", settled_by: "record", settled_at: aTime };
    const recorded = expectAnswer(await once.post(world.alice, "record", { epoch: 1, result }), 200, shape);
    const same = await once.post(world.alice, "record", { epoch: 1, result: { list: [1, null, "x"], version: 7 } });
    expectSameJson(expectAnswer(same, 200).body, recorded.body, "the same result again", same.request);
    expectRefusal(await once.post(world.alice, "record", { epoch: 1, result: 8 }), 409, "epoch_settled");
    for (const [by, claim] of [
      [world.alice, "c-1"],
      [world.alice, "c-2"],
      [world.bob, "c-1"],
    ] as const) {
      const answer = expectAnswer(await once.claim(by, claim), 200, { epoch: 1 });
      expectSameJson(answer.body.result, result, "the result", answer.request);
    }
    const shown = expectAnswer(await once.get(), 200, { state: "done", epoch: 1, epochs: aList });
    expectSameJson(shown.body.result, result, "the result", shown.request);
    expectRefusal(await once.claim(world.bob, "c-9", { inputs_fingerprint: "0".repeat(64) }), 409, "inputs_mismatch");
  }),
  scenario("4.6", "inputs", "other inputs under a key that is taken are inputs_mismatch", async (world) => {
    const once = new OnceKey(world);
    expectAnswer(await once.claim(world.alice, "c-1"), 201);
    const other = { inputs_fingerprint: "00".repeat(32) };
    for (const claim of ["c-1", "c-2"]) {
      expectRefusal(await once.claim(world.alice, claim, other), 409, "inputs_mismatch", { epoch: 1 });
    }
  }),
  scenario(
    "4.6",
    "holder",
    "only the member that claimed renews and records; an epoch that never was is 404",
    async (world) => {
      const once = new OnceKey(world);
      expectAnswer(await once.claim(world.alice, "c-1"), 201);
      expectRefusal(await once.post(world.bob, "record", { epoch: 1, result: 1 }), 403, "forbidden");
      expectRefusal(await once.post(world.bob, "renew", { epoch: 1 }), 403, "forbidden");
      for (const [action, json] of [
        ["record", { epoch: 2, result: 1 }],
        ["renew", { epoch: 2 }],
        ["resolve", { epoch: 2, outcome: "done" }],
      ] as const) {
        expectRefusal(await once.post(world.alice, action, json), 404, "not_found");
      }
      expectAnswer(await once.get(), 200, { state: "running" });
    },
  ),
];

const leases: readonly Scenario<BrokerWorld>[] = [
  scenario(
    "4.6",
    "uncertain",
    "an expired lease makes the claim uncertain, never free; its holder may still record",
    async (world) => {
      const once = new OnceKey(world);
      await once.letExpire(world.alice, "c-1");
      for (const [by, claim] of [
        [world.bob, "c-2"],
        [world.alice, "c-3"],
        [world.alice, "c-1"],
      ] as const) {
        expectRefusal(await once.claim(by, claim), 409, "uncertain", { epoch: 1 });
      }
      expectRefusal(await once.post(world.alice, "renew", { epoch: 1 }), 409, "uncertain");
      expectAnswer(await once.post(world.alice, "record", { epoch: 1, result: "late" }), 200, { outcome: "done" });
      expectAnswer(await once.claim(world.bob, "c-2"), 200, { result: "late", epoch: 1 });
    },
  ),
  scenario(
    "4.6",
    "not-done",
    "not_done releases the key under a new epoch, and the old holder is refused",
    async (world) => {
      const once = new OnceKey(world);
      await once.letExpire(world.alice, "c-1");
      const resolution = { epoch: 1, outcome: "not_done" };
      const resolved = expectAnswer(await once.post(world.bob, "resolve", resolution), 200, {
        ...resolution,
        settled_by: "resolve",
        settled_by_pubkey: world.bob.pubkey,
      });
      const again = await once.post(world.carol, "resolve", resolution);
      expectSameJson(expectAnswer(again, 200).body, resolved.body, "the same word again", again.request);
      expectRefusal(await once.post(world.bob, "resolve", { epoch: 1, outcome: "done" }), 409, "epoch_settled");
      expectRefusal(await once.post(world.alice, "record", { epoch: 1, result: 1 }), 409, "epoch_settled");
      expectRefusal(await once.post(world.alice, "renew", { epoch: 1 }), 409, "epoch_settled");
      expectAnswer(await once.get(), 200, { state: "released" });
      expectRefusal(await once.claim(world.alice, "c-1"), 409, "epoch_settled");
      expectAnswer(await once.claim(world.bob, "c-2"), 201, { epoch: 2 });
      expectRefusal(await once.post(world.alice, "record", { epoch: 1, result: 1 }), 409, "epoch_settled");
      expectAnswer(await once.post(world.bob, "record", { epoch: 2, result: 2 }), 200, { epoch: 2, outcome: "done" });
      expectAnswer(await once.claim(world.alice, "c-3"), 200, { result: 2, epoch: 2 });
    },
  ),
  scenario(
    "4.6",
    "resolved-done",
    "done is a result too, and the late one of the holder does not replace it",
    async (world) => {
      const once = new OnceKey(world);
      await once.letExpire(world.alice, "c-1");
      const resolution = { epoch: 1, outcome: "done", result: { by: "bob" } };
      expectAnswer(await once.post(world.bob, "resolve", resolution), 200, {
        epoch: 1,
        outcome: "done",
        settled_by: "resolve",
      });
      expectAnswer(await once.post(world.bob, "resolve", resolution), 200, { outcome: "done" });
      expectRefusal(await once.post(world.bob, "resolve", { epoch: 1, outcome: "not_done" }), 409, "epoch_settled");
      expectRefusal(await once.post(world.alice, "record", { epoch: 1, result: "late" }), 409, "epoch_settled");
      const answer = expectAnswer(await once.claim(world.carol, "c-2"), 200);
      expectSameJson(answer.body.result, { by: "bob" }, "the result", answer.request);
    },
  ),
  scenario("4.6", "renew", "a renewal by the holder keeps the lease for as long again", async (world) => {
    const once = new OnceKey(world);
    const { lease_until: first } = expectAnswer(await once.claim(world.alice, "c-1"), 201).body;
    const renewed = expectAnswer(await once.post(world.alice, "renew", { epoch: 1 }), 200, {
      epoch: 1,
      lease_until: aTime,
    });
    const later = Number(renewed.body.lease_until);
    expectEqual(later >= Number(first), true, "a lease that ends no sooner", renewed.request);
    expectRefusal(await once.claim(world.bob, "c-2"), 409, "running", { lease_until: later });
  }),
];

const bounds: readonly Scenario<BrokerWorld>[] = [
  scenario(
    "4.6",
    "result-size",
    "a result has at most 64 KiB; a larger one is refused and records nothing",
    async (world) => {
      const once = new OnceKey(world);
      expectAnswer(await once.claim(world.alice, "c-1"), 201);
      const largest = "x".repeat(resultBytesMax - 2);
      const record = (result: unknown) => once.post(world.alice, "record", { epoch: 1, result });
      expectRefusal(await record(`${largest}x`), 413, "payload_too_large");
      expectAnswer(await once.get(), 200, { state: "running" });
      expectAnswer(await record(largest), 200, { outcome: "done" });
    },
  ),
  scenario(
    "4.6",
    "malformed",
    "keys, claims, leases and outcomes of another form are 400, and so are unknown fields",
    async (world) => {
      const once = new OnceKey(world);
      for (const key of ["has space", "x".repeat(129), "ü"]) {
        expectRefusal(await new OnceKey(world, key).claim(world.alice, "c-1"), 400);
      }
      const wrong = [
        { lease_s: 0 },
        { lease_s: 43_201 },
        { lease_s: 1.5 },
        { lease_s: "60" },
        { inputs_fingerprint: "x" },
        { inputs_fingerprint: "A".repeat(64) },
        { claim_id: "" },
        { claim_id: "has space" },
        { claim_id: "x".repeat(129) },
        { colour: 1 },
      ];
      for (const more of wrong) expectRefusal(await once.claim(world.alice, "c-1", more), 400);
      expectAnswer(await once.claim(world.alice, "c-1"), 201);
      const settle: readonly (readonly ["renew" | "record" | "resolve", object])[] = [
        ["renew", { epoch: 0 }],
        ["renew", { epoch: 1, colour: 1 }],
        ["record", { epoch: 1 }],
        ["record", { epoch: "1", result: 1 }],
        ["record", { epoch: 1, result: 1, colour: 1 }],
        ["resolve", { epoch: 1, outcome: "maybe" }],
        ["resolve", { epoch: 1, outcome: "not_done", result: 1 }],
        ["resolve", { epoch: 1 }],
      ];
      for (const [action, json] of settle) expectRefusal(await once.post(world.alice, action, json), 400);
      for (const token of [undefined, "wrong"]) {
        const stranger = world.as(token);
        expectRefusal(await once.claim(stranger, "c-1"), 401, "unauthorized");
        expectRefusal(await stranger.call("GET", once.path()), 401, "unauthorized");
      }
    },
  ),
  scenario("4.6", "socket", "every call of once answers on the socket as it does over HTTP", async (world) => {
    const once = new OnceKey(world);
    const { key } = once;
    const peer = await world.alice.connect("client");
    const claim = { key, claim_id: "c-1", inputs_fingerprint: inputs, lease_s: 60 };
    const first = expectAnswer(await peer.request("once.claim", claim), 201, { epoch: 1 });
    expectAnswer(await once.claim(world.alice, "c-1"), 201, { epoch: 1, lease_until: Number(first.body.lease_until) });
    expectAnswer(await peer.request("once.renew", { key, epoch: 1 }), 200, { epoch: 1 });
    expectRefusal(await peer.request("once.resolve", { key, epoch: 1, outcome: "done" }), 409, "running");
    expectAnswer(await peer.request("once.record", { key, epoch: 1, result: [1] }), 200, { outcome: "done" });
    const shown = await peer.request("once.get", { key });
    expectSameJson(shown.body, (await world.alice.call("GET", once.path())).body, "what HTTP shows", shown.request);
  }),
];

export const onceScenarios: readonly Scenario<BrokerWorld>[] = [...claims, ...leases, ...bounds];

// 5.1 and 5.2: every call over HTTP: which callers may make it, what it refuses, and the form of its answer.
import { decodeInvite } from "@claudemesh/protocol/wire/invite";
import {
  eventually,
  expectAnswer,
  expectEqual,
  expectRefusal,
  expectThat,
  fieldOf,
  itemsOf,
} from "../../frame/expect.ts";
import { aCount, aHistoryId, aList, anything, aPublicKey, aText, aTime, aUuidV7, oneOf } from "../../frame/pattern.ts";
import { type Scenario, scenario } from "../../frame/scenario.ts";
import { createMemberKeys } from "../../transport/member-keys.ts";
import { fingerprintOf } from "../../vectors.ts";
import { readPages } from "../pages.ts";
import { accept, type BrokerWorld, type Caller, strangersKey, toMember, toQueue, toTopic } from "./world.ts";

const running: readonly Scenario<BrokerWorld>[] = [
  scenario("5.1", "health", "/healthz and /readyz need no token", async (world) => {
    for (const path of ["/healthz", "/readyz"]) expectAnswer(await world.ask({ method: "GET", path }), 200);
  }),
  scenario("5.1", "admin", "creating a mesh needs the broker's admin token", async (world) => {
    const json = {
      name: world.fresh("mesh"),
      owner: { name: "olga", pubkey: strangersKey() },
      signature: "0".repeat(128),
    };
    for (const token of [undefined, "wrong", world.alice.token]) {
      expectRefusal(await world.ask({ method: "POST", path: "/v1/meshes", token, json }), 401, "unauthorized");
    }
  }),
];

type Call = { readonly method: string; readonly path: string; readonly json?: object };

/** Each call with an input that would be accepted from a known caller. */
function everyCall(world: BrokerWorld): readonly Call[] {
  const id = "0198c0de-0000-7000-8000-0000000000aa";
  const settle = { lease_token: id, broker_message_ids: [id] };
  const send = { client_message_id: world.fresh("call"), destination: toMember(world.bob), body: "x" };
  const key = strangersKey();
  return [
    { method: "POST", path: "/messages", json: send },
    { method: "GET", path: `/messages/by-client-id/${send.client_message_id}?fingerprint=${fingerprintOf(send)}` },
    { method: "POST", path: `/messages/by-client-id/${world.fresh("f")}/fence`, json: { fingerprint: "a".repeat(64) } },
    { method: "GET", path: `/messages/${id}` },
    { method: "GET", path: "/history" },
    { method: "GET", path: "/search?q=x" },
    { method: "GET", path: "/mentions" },
    { method: "POST", path: "/topics", json: { name: world.fresh("topic") } },
    { method: "GET", path: "/topics" },
    { method: "PUT", path: "/topics/none/subscription" },
    { method: "DELETE", path: "/topics/none/subscription" },
    { method: "DELETE", path: `/topics/${world.fresh("none")}` },
    { method: "POST", path: "/queues", json: { id: world.fresh("queue") } },
    { method: "POST", path: "/queues/none/lease", json: { lease_request_id: "x", max: 1, lease_s: 1 } },
    { method: "POST", path: "/queues/none/ack", json: settle },
    { method: "POST", path: "/queues/none/nack", json: settle },
    { method: "GET", path: "/queues/none/parked" },
    { method: "POST", path: "/queues/none/revive", json: { broker_message_ids: [id] } },
    { method: "GET", path: "/members" },
    { method: "DELETE", path: `/members/${key}` },
    { method: "GET", path: "/peers" },
    { method: "POST", path: "/profile", json: { status: "x" } },
    { method: "POST", path: "/invites", json: {} },
    { method: "GET", path: "/invites" },
    { method: "DELETE", path: `/invites/${id}` },
    { method: "POST", path: "/tokens", json: {} },
    { method: "GET", path: "/tokens" },
    { method: "DELETE", path: `/tokens/${id}` },
  ];
}

const guards: readonly Scenario<BrokerWorld>[] = [
  scenario(
    "5.2",
    "needs-token",
    "every call needs a member's token: without, or with another, it is 401",
    async (world) => {
      for (const { method, path, json } of everyCall(world)) {
        for (const token of [undefined, "wrong", world.adminToken ?? "wrong2"]) {
          expectRefusal(await world.as(token).call(method, path, json), 401, "unauthorized");
        }
      }
    },
  ),
  scenario("5.2", "unknown-mesh", "a mesh that is not there looks like a wrong token", async (world) => {
    const path = `/v1/meshes/${world.fresh("none")}/topics`;
    expectRefusal(await world.ask({ method: "GET", path, token: world.alice.token }), 401, "unauthorized");
  }),
  scenario("5.2", "mesh-by-id", ":mesh is the name or the id", async (world) => {
    const path = `/v1/meshes/${world.meshRef.meshId}/topics`;
    expectAnswer(await world.ask({ method: "GET", path, token: world.alice.token }), 200, { items: aList });
  }),
  scenario(
    "5.2",
    "unknown-fields",
    "every call refuses fields that it does not know, in body and query",
    async (world) => {
      for (const { method, path, json } of everyCall(world)) {
        const odd = `${path}${path.includes("?") ? "&" : "?"}colour=blue`;
        expectRefusal(await world.alice.call(method, odd, json), 400, "unknown_field");
        if (json === undefined) continue;
        expectRefusal(await world.alice.call(method, path, { ...json, colour: "blue" }), 400, "unknown_field");
      }
    },
  ),
  scenario("5.2", "limits", "limit is 1–1000 everywhere", async (world) => {
    const queue = await world.queue();
    const lists = [
      "/history?",
      "/search?q=x&",
      "/mentions?",
      "/topics?",
      `/queues/${queue}/parked?`,
      "/members?",
      "/peers?",
      "/tokens?",
    ];
    for (const path of lists) {
      for (const limit of ["1", "1000"])
        expectAnswer(await world.alice.call("GET", `${path}limit=${limit}`), 200, { items: aList });
      for (const limit of ["0", "1001", "-1", "x", "1.5", ""]) {
        expectRefusal(await world.alice.call("GET", `${path}limit=${limit}`), 400);
      }
    }
  }),
  scenario(
    "5.2",
    "no-such-path",
    "a path that is not there is 404, another method 405, in the one shape of errors",
    async (world) => {
      expectRefusal(await world.alice.call("GET", "/nothing/here"), 404, "not_found");
      expectRefusal(await world.alice.call("DELETE", "/history"), 405, "method_not_allowed");
    },
  ),
  scenario("5.2", "json-only", "a body that is not declared as JSON, or is none, is refused", async (world) => {
    const call = { method: "POST", path: `/v1/meshes/${world.meshRef.mesh}/topics`, token: world.alice.token };
    const text = await world.ask({ ...call, raw: '{"name":"x"}', headers: { "content-type": "text/plain" } });
    expectRefusal(text, 415, "unsupported_media_type");
    for (const raw of ["", "{", "[]", "null", '"x"']) expectRefusal(await world.ask({ ...call, raw }), 400);
  }),
  scenario("5.2", "owners-only", "inviting, revoking and deleting a topic are an owner's", async (world) => {
    const topic = await world.topic();
    const { alice, bob } = world;
    expectRefusal(await alice.call("POST", "/invites", {}), 403, "forbidden");
    expectRefusal(await alice.call("GET", "/invites"), 403, "forbidden");
    expectRefusal(await alice.call("DELETE", `/members/${bob.pubkey}`), 403, "forbidden");
    expectRefusal(await alice.call("DELETE", `/topics/${topic}`), 403, "forbidden");
    expectAnswer(await bob.call("GET", "/topics"), 200);
  }),
];

async function expectFound(world: BrokerWorld, id: string): Promise<void> {
  const word = world.fresh("w").replaceAll("-", "");
  await accept(world.alice, { client_message_id: id, destination: toMember(world.bob), body: `Green ${word} build` });
  const search = (q: string) => world.bob.call("GET", `/search?q=${encodeURIComponent(q)}`);
  await eventually("the message is found", async () => {
    const page = expectAnswer(await search(`build ${word.toUpperCase()}`), 200, { next_after: anything });
    const found = itemsOf(page).some(({ client_message_id }) => client_message_id === id);
    return found ? { found } : { got: page.body, request: page.request };
  });
  expectAnswer(await search(`${word} purple`), 200, { items: [] });
}

const reading: readonly Scenario<BrokerWorld>[] = [
  scenario("5.2", "history", "history has every field of an item, body as text or base64", async (world) => {
    const text = {
      client_message_id: world.fresh("h"),
      destination: toMember(world.bob),
      body: "text",
      priority: "low",
    };
    const bytes = { client_message_id: world.fresh("h"), destination: toMember(world.bob), body_base64: "//7DKA==" };
    const first = await accept(world.alice, { ...text, meta: { a: [1, { b: null }] }, reply_to_id: "r" });
    await accept(world.alice, bytes);
    const item = {
      history_id: aHistoryId,
      broker_message_id: aUuidV7,
      sender_pubkey: world.alice.pubkey,
      accepted_at: aTime,
    };
    expectAnswer(await world.alice.call("GET", `/history?after=${Number(fieldOf(first, "history_id")) - 1}`), 200, {
      items: [
        { ...text, ...item, meta: { a: [1, { b: null }] }, reply_to_id: "r", envelope_version: "1" },
        { ...bytes, ...item, meta: null, reply_to_id: null, priority: "next", envelope_version: "1" },
      ],
      next_after: oneOf(null, Number(fieldOf(first, "history_id")) + 1),
    });
  }),
  scenario("5.2", "state", "a message's state has its ids, destination, counts and deliveries", async (world) => {
    const topic = await world.topic();
    for (const who of [world.bob, world.carol])
      expectAnswer(await who.call("PUT", `/topics/${topic}/subscription`), 200);
    const send = { client_message_id: world.fresh("s"), destination: toTopic(topic), body: "x" };
    const sent = await accept(world.alice, send);
    const path = `/messages/${fieldOf(sent, "broker_message_id")}`;
    const answer = expectAnswer(await world.alice.call("GET", path), 200, {
      broker_message_id: fieldOf(sent, "broker_message_id"),
      client_message_id: send.client_message_id,
      history_id: Number(fieldOf(sent, "history_id")),
      destination: { kind: "topic", ref: topic },
      sender_pubkey: world.alice.pubkey,
      accepted_at: aTime,
      counts: { unsettled: aCount, delivered: aCount, expired: aCount },
      deliveries: [{ recipient_pubkey: aPublicKey, state: anything }, { recipient_pubkey: aPublicKey }],
    });
    const { deliveries } = answer.body as { deliveries: { recipient_pubkey: string }[] };
    const recipients = deliveries.map(({ recipient_pubkey }) => recipient_pubkey).sort();
    expectEqual(recipients, [world.bob.pubkey, world.carol.pubkey].sort(), "the subscribers", answer.request);
  }),
  scenario("5.2", "mentions", "mentions finds what mentions a member, in history order", async (world) => {
    const meta = { mentions: [world.bob.pubkey] };
    const ids = [world.fresh("men"), world.fresh("men")];
    let after = 0;
    for (const id of ids) {
      const sent = await accept(world.alice, {
        client_message_id: id,
        destination: toMember(world.bob),
        body: "x",
        meta,
      });
      after ||= Number(fieldOf(sent, "history_id")) - 1;
      await accept(world.alice, { client_message_id: world.fresh("men"), destination: toMember(world.bob), body: "x" });
    }
    const page = expectAnswer(await world.bob.call("GET", `/mentions?after=${after}`), 200);
    expectEqual(
      itemsOf(page).map(({ client_message_id }) => client_message_id),
      ids,
      "both mentions",
      page.request,
    );
  }),
  scenario("5.2", "search", "search finds messages that hold every word, in any case", async (world) => {
    await expectFound(world, world.fresh("find"));
  }),
  scenario(
    "5.2",
    "search-past-no-text",
    "a message without text keeps none that follows from being found",
    async (world) => {
      for (const body of [{ body: "" }, { body_base64: "//4=" }]) {
        await accept(world.alice, {
          client_message_id: world.fresh("no-text"),
          destination: toMember(world.bob),
          ...body,
        });
      }
      await expectFound(world, world.fresh("find"));
    },
  ),
];

const managing: readonly Scenario<BrokerWorld>[] = [
  scenario("5.2", "topics", "topics are created, listed with one's subscription, and left", async (world) => {
    const name = world.fresh("topic");
    expectAnswer(await world.alice.call("POST", "/topics", { name }), 201, { name, post_policy: "members" });
    expectAnswer(await world.bob.call("PUT", `/topics/${name}/subscription`), 200, { name, subscribed: true });
    const listed = async (who: Caller) => {
      for (let after = ""; ; ) {
        const page = expectAnswer(await who.call("GET", `/topics?limit=1000&after=${after}`), 200, { items: aList });
        const own = itemsOf(page).find((each) => each.name === name);
        if (own !== undefined) return { status: 200, body: own, request: page.request };
        expectThat(typeof page.body.next_cursor === "string", `${name} among the topics`, "not there", page.request);
        after = String(page.body.next_cursor);
      }
    };
    expectAnswer(await listed(world.bob), 200, { post_policy: "members", subscribed: true });
    expectAnswer(await listed(world.alice), 200, { subscribed: false });
    expectAnswer(await world.bob.call("DELETE", `/topics/${name}/subscription`), 200, { subscribed: false });
    expectRefusal(await world.bob.call("PUT", `/topics/${world.fresh("none")}/subscription`), 404, "not_found");
  }),
  scenario("5.2", "queues", "calls to a queue that is not there are 404", async (world) => {
    const queue = `/queues/${world.fresh("none")}`;
    const lease = { lease_request_id: "x", max: 1, lease_s: 1 };
    expectRefusal(await world.alice.call("POST", `${queue}/lease`, lease), 404, "not_found");
    expectRefusal(await world.alice.call("GET", `${queue}/parked`), 404, "not_found");
    const there = await world.queue();
    for (const wrong of [{ max: 0 }, { lease_s: 0 }, { lease_request_id: "" }, { max: "1" }]) {
      expectRefusal(await world.alice.call("POST", `/queues/${there}/lease`, { ...lease, ...wrong }), 400);
    }
    await accept(world.alice, { client_message_id: world.fresh("job"), destination: toQueue(there), body: "x" });
  }),
  scenario("5.2", "members", "members are listed with key, name and role; a revoked one is not", async (world) => {
    const find = async (pubkey: string) => {
      for (let after = ""; ; ) {
        const page = expectAnswer(await world.alice.call("GET", `/members?limit=1000&after=${after}`), 200);
        const own = itemsOf(page).find((each) => each.pubkey === pubkey);
        if (own !== undefined || page.body.next_cursor === null) return { own, request: page.request };
        after = String(page.body.next_cursor);
      }
    };
    const { own, request } = await find(world.bob.pubkey);
    expectAnswer({ status: 200, body: { ...own }, request }, 200, {
      name: world.bob.name,
      role: "member",
      joined_at: aTime,
    });
    const { owner } = world;
    const dave = await world.join("dave");
    expectAnswer(await owner.call("DELETE", `/members/${dave.pubkey}`), 200);
    const gone = await find(dave.pubkey);
    expectEqual(gone.own, undefined, "a revoked member in the list", gone.request);
    expectRefusal(await owner.call("DELETE", `/members/${strangersKey()}`), 404, "not_found");
    expectRefusal(await dave.call("GET", "/members"), 401, "unauthorized");
  }),
  scenario(
    "5.2",
    "tokens",
    "each token is new, listed without its secret, and good until it is revoked",
    async (world) => {
      const [first, second] = [await world.bob.makeToken("ci"), await world.bob.makeToken("ci")];
      expectThat(fieldOf(first, "token") !== fieldOf(second, "token"), "two tokens", first.body, second.request);
      const list = expectAnswer(await world.bob.call("GET", "/tokens?limit=1000"), 200);
      expectThat(list.text.includes(fieldOf(first, "token_id")), "the token's id in the list", list.body, list.request);
      expectThat(
        !list.text.includes(fieldOf(first, "token")),
        "no secret in the list",
        "the token itself",
        list.request,
      );
      expectAnswer(await world.as(fieldOf(first, "token")).call("GET", "/topics"), 200);
      expectAnswer(await world.bob.call("DELETE", `/tokens/${fieldOf(first, "token_id")}`), 200);
      expectRefusal(await world.as(fieldOf(first, "token")).call("GET", "/topics"), 401, "unauthorized");
      expectAnswer(await world.as(fieldOf(second, "token")).call("GET", "/topics"), 200);
      expectRefusal(await world.alice.call("DELETE", `/tokens/${fieldOf(second, "token_id")}`), 404, "not_found");
    },
  ),
  scenario("8.3", "token-makes-none", "a bearer token makes no further tokens", async (world) => {
    expectRefusal(await world.bob.call("POST", "/tokens", { label: "ci" }), 403, "forbidden");
  }),
  scenario(
    "8.3",
    "signed-operations",
    "making a token needs a signature over its content, which is good once and nowhere else",
    async (world) => {
      const peer = await world.bob.connect("client");
      const other = await world.bob.connect("client");
      expectAnswer(await peer.request("token.create", { label: "signed" }), 201);
      expectRefusal(await peer.request("token.create", { label: "x", signature: "0".repeat(128) }), 403, "forbidden");
      expectRefusal(await peer.requestText('{"type":"token.create","id":90,"label":"bare"}', 90), 403, "forbidden");
      const again = peer.signedText("token.create", 91, { label: "once" });
      expectAnswer(await peer.requestText(again, 91), 201);
      expectRefusal(await peer.requestText(again, 91), 403, "forbidden");
      expectRefusal(await other.requestText(peer.signedText("token.create", 92, { label: "y" }), 92), 403, "forbidden");
      const swapped = again.replace("once", "more");
      expectRefusal(await peer.requestText(swapped, 91), 403, "forbidden");
    },
  ),
  scenario(
    "5.2",
    "invites",
    "each invite is new, listed without its secret, and good until it is used or revoked",
    async (world) => {
      const { owner } = world;
      const make = async () =>
        expectAnswer(await owner.call("POST", "/invites", {}), 201, {
          invite: aText,
          invite_id: aText,
          expires_at: aTime,
        });
      const [first, second] = [await make(), await make()];
      const [revoked, used] = [first, second].map((made) => fieldOf(made, "invite_id"));
      const secretOf = (made: typeof first) => decodeInvite(fieldOf(made, "invite")).secret;
      expectAnswer(await owner.call("DELETE", `/invites/${revoked}`), 200);
      const thief = world.joinCall(secretOf(first), world.fresh("thief"), createMemberKeys());
      expectRefusal(await world.ask(thief), 403, "invite_refused");
      const keys = createMemberKeys();
      expectAnswer(await world.ask(world.joinCall(secretOf(second), world.fresh("joiner"), keys)), 201);
      expectRefusal(await owner.call("DELETE", `/invites/${used}`), 409, "invite_used");
      const items = await readPages(owner, "/invites", 1000, (page) => {
        const shown = [first, second].some((made) => page.text.includes(secretOf(made)));
        expectThat(!shown, "no secret in the list", "the secret itself", page.request);
      });
      const ends = [revoked, used].map((id) => items.find(({ invite_id }) => invite_id === id));
      expectEqual(ends[0]?.state, "revoked", "the state of the revoked invite", first.request);
      expectEqual(ends[1]?.state, "used", "the state of the used invite", second.request);
      expectEqual(ends[1]?.used_by, keys.pubkey, "who used the invite", second.request);
    },
  ),
  scenario("5.2", "profile", "a profile changes the fields that it names and shows in peers", async (world) => {
    await world.bob.connect("daemon");
    expectAnswer(await world.bob.call("POST", "/profile", { summary: "one", title: "builder" }), 200, {
      pubkey: world.bob.pubkey,
      summary: "one",
    });
    expectAnswer(await world.bob.call("POST", "/profile", { summary: "two" }), 200, {
      summary: "two",
      title: "builder",
    });
    const page = expectAnswer(await world.alice.call("GET", "/peers?limit=1000"), 200);
    const own = itemsOf(page).find(({ pubkey }) => pubkey === world.bob.pubkey);
    expectAnswer({ status: 200, body: { ...own }, request: page.request }, 200, {
      summary: "two",
      title: "builder",
      connected_at: aTime,
    });
  }),
];

export const callScenarios: readonly Scenario<BrokerWorld>[] = [...running, ...guards, ...reading, ...managing];

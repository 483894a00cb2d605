// 4.2: every call of the registrar: its guards, its lists, the resolver, and that a socket answers the same.
import { expectAnswer, expectEqual, expectRefusal, expectSameJson, itemsOf } from "../../frame/expect.ts";
import { aList, aTime } from "../../frame/pattern.ts";
import { type Scenario, scenario } from "../../frame/scenario.ts";
import type { BrokerWorld } from "../broker/world.ts";
import { readPages } from "../pages.ts";
import {
  approve,
  expectUnknown,
  freshEffect,
  keyPath,
  register,
  registered,
  requestFor,
  signTerms,
  termsFor,
} from "./requests.ts";

type Call = { readonly method: string; readonly path: string; readonly json?: object };

/** Each call with an input that would be accepted from an owner. */
function everyCall(world: BrokerWorld): readonly Call[] {
  const { signingOwner } = world;
  const terms = termsFor(world, freshEffect(world));
  const approved = { terms, approval_id: terms.approval_id, authorization_nonce: "none" };
  const compensation = { approval_id: "x", authorization_nonce: "x", attempt_id: "x" };
  return [
    { method: "POST", path: "/registrar/approvals", json: signTerms(signingOwner, terms) },
    { method: "GET", path: "/registrar/approvals" },
    { method: "POST", path: "/registrar/approvals/none/revoke" },
    { method: "POST", path: "/registrar/requests", json: requestFor(world, approved) },
    { method: "GET", path: keyPath("none") },
    { method: "GET", path: keyPath("none", "/attempts") },
    { method: "POST", path: keyPath("none", "/compensate"), json: compensation },
    { method: "GET", path: "/registrar/registrations" },
    { method: "GET", path: "/registrar/audit" },
  ];
}

export const registrarCallScenarios: readonly Scenario<BrokerWorld>[] = [
  scenario(
    "4.2",
    "needs-token",
    "every call needs a member's token: without, or with another, it is 401",
    async (world) => {
      for (const { method, path, json } of everyCall(world)) {
        for (const token of [undefined, "wrong"]) {
          expectRefusal(await world.as(token).call(method, path, json), 401, "unauthorized");
        }
      }
    },
  ),
  scenario(
    "4.2",
    "unknown-fields",
    "every call refuses fields that it does not know, in body and query",
    async (world) => {
      const { signingOwner } = world;
      for (const { method, path, json } of everyCall(world)) {
        expectRefusal(await signingOwner.call(method, `${path}?colour=blue`, json), 400, "unknown_field");
        if (json === undefined) continue;
        expectRefusal(await signingOwner.call(method, path, { ...json, colour: "blue" }), 400, "unknown_field");
      }
    },
  ),
  scenario("4.2", "limits", "limit is 1–1000, and a cursor is one of the list's own", async (world) => {
    const { signingOwner } = world;
    for (const path of ["/registrar/approvals?", "/registrar/registrations?", "/registrar/audit?"]) {
      for (const limit of ["1", "1000"]) {
        expectAnswer(await signingOwner.call("GET", `${path}limit=${limit}`), 200, { items: aList });
      }
      for (const limit of ["0", "1001", "-1", "x", "1.5", ""]) {
        expectRefusal(await signingOwner.call("GET", `${path}limit=${limit}`), 400);
      }
    }
  }),
  scenario("4.2", "registrations", "registrations are listed in their order, page by page", async (world) => {
    const ids: string[] = [];
    for (let n = 0; n < 3; n++) {
      const { first } = await registered(world);
      ids.push((first.body.registration as { registration_id: string }).registration_id);
    }
    const items = await readPages(world.bob, "/registrar/registrations", 2);
    const listed = items.map(({ registration }) => (registration as { registration_id: string }).registration_id);
    expectEqual(
      listed.filter((id) => ids.includes(id)),
      ids,
      "the three among all, in their order",
      "GET registrations",
    );
    expectEqual(new Set(listed).size, listed.length, "each once", "GET registrations");
  }),
  scenario("4.2", "resolver", "the resolver says what became of a key, also that nothing did", async (world) => {
    await expectUnknown(world, world.fresh("key"));
    const approved = await approve(world, freshEffect(world));
    const request = requestFor(world, approved);
    await expectUnknown(world, request.logical_request_key);
    const first = expectAnswer(await register(world.alice, request), 201);
    const path = keyPath(request.logical_request_key);
    const once = expectAnswer(await world.bob.call("GET", path), 200, { attempts: { recorded: 1, retries: 0 } });
    expectSameJson(once.body.registration, first.body.registration, "the registration", once.request);
    expectEqual(once.body.state, first.body.state, "the state", once.request);
    expectAnswer(await register(world.alice, { ...request, attempt_id: "second" }), 200);
    expectAnswer(await register(world.bob, request), 200);
    expectAnswer(await world.bob.call("GET", path), 200, { attempts: { recorded: 2, retries: 2 } });
    const attempts = expectAnswer(await world.bob.call("GET", `${path}/attempts`), 200);
    const winner = { attempt_id: request.attempt_id, member_pubkey: world.alice.pubkey, won: true, first_at: aTime };
    expectAnswer({ ...attempts, body: { first: itemsOf(attempts)[0] } }, 200, { first: winner });
  }),
  scenario("4.2", "malformed", "a request with a field missing or of another form is 400", async (world) => {
    const sound = requestFor(world, await approve(world, freshEffect(world)));
    const wrong: readonly object[] = [
      ...Object.keys(sound).map((field) => ({ [field]: undefined })),
      ...Object.keys(sound).map((field) => ({ [field]: 1 })),
      { logical_request_key: "" },
      { logical_request_key: "x".repeat(257) },
      { attempt_id: "x".repeat(129) },
      { target: "x".repeat(1025) },
      { artifact_hash: "g".repeat(64) },
      { authorization_nonce: "has space" },
      { expires_at: -1 },
      { expires_at: "soon" },
    ];
    for (const change of wrong) expectRefusal(await register(world.alice, { ...sound, ...change }), 400);
    expectAnswer(await register(world.alice, sound), 201);
  }),
  scenario("4.2", "socket", "every call answers on the socket as it does over HTTP", async (world) => {
    const { signingOwner } = world;
    const owner = await signingOwner.connect("client");
    const peer = await world.alice.connect("client");
    const terms = termsFor(world, freshEffect(world));
    const approval = expectAnswer(await owner.request("registrar.approve", signTerms(signingOwner, terms)), 201);
    const { approval_id } = terms;
    const approved = { terms, approval_id, authorization_nonce: String(approval.body.authorization_nonce) };
    const request = requestFor(world, approved);
    const first = expectAnswer(await peer.request("registrar.register", request), 201, { duplicate: false });
    const again = expectAnswer(await register(world.alice, request), 200, { duplicate: true });
    expectSameJson(again.body.registration, first.body.registration, "the registration over HTTP", again.request);
    const { logical_request_key } = request;
    const resolved = await peer.request("registrar.resolve", { logical_request_key });
    const http = await world.alice.call("GET", keyPath(logical_request_key));
    expectSameJson(resolved.body, http.body, "what the resolver says over HTTP", resolved.request);
    expectRefusal(await peer.request("registrar.audit", {}), 403, "forbidden");
    expectAnswer(await owner.request("registrar.audit", { limit: 1 }), 200, { items: aList });
    expectAnswer(await owner.request("registrar.revoke", { approval_id }), 200, { approval_id });
    expectRefusal(await peer.request("registrar.register", { ...request, colour: 1 }), 400, "unknown_field");
  }),
];

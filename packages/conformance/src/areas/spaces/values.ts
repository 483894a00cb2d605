// 3.1: what entities hold, what operations do to them, and what is refused, by the published vectors.
import type { JsonValue } from "@claudemesh/protocol/json";
import { parseOwnJsonText } from "@claudemesh/protocol/json";
import { expectAnswer, expectRefusal, expectSameJson, itemsOf } from "../../frame/expect.ts";
import { aText } from "../../frame/pattern.ts";
import { type Scenario, scenario } from "../../frame/scenario.ts";
import { readVectors } from "../../vectors.ts";
import type { BrokerWorld } from "../broker/world.ts";
import {
  add,
  createSpace,
  expectAccepted,
  inSessions,
  type Operation,
  patch,
  remove,
  replace,
  Session,
  set,
  spacePath,
} from "./session.ts";

type ValueVectors = {
  readonly accept: readonly { readonly name: string; readonly text: string; readonly stored?: string }[];
  readonly refuse: readonly { readonly name: string; readonly text: string; readonly error?: string }[];
  readonly ids: readonly string[];
  readonly not_ids: readonly string[];
};
type PatchCase = {
  readonly name: string;
  readonly document: JsonValue;
  readonly patches: readonly { readonly op: string; readonly path: string }[];
  readonly after?: JsonValue;
  readonly reason?: string;
  readonly patchIndex?: number;
};

const patchCases = () => readVectors<{ cases: readonly PatchCase[] }>("spaces-patches").cases;
const documentBytesMax = 1_048_576;
const levelsMax = 128;

/** Sends a commit with one value in exactly the given text. */
function setRaw(session: Session, localSeq: number, entries: readonly (readonly [id: string, text: string])[]) {
  const operations = entries.map(([id, text]) => `{"op":"set","id":${JSON.stringify(id)},"value":{"value":${text}}}`);
  const commit = `{"localSeq":${localSeq},"reads":{"confirmed":[],"pending":[]},"operations":[${operations.join(",")}]}`;
  const raw = `${JSON.stringify(session.credentials).slice(0, -1)},"commit":${commit}}`;
  return session.caller.callRaw("POST", spacePath(session.space, "/commits"), raw);
}

async function documentsOf(session: Session, ids: readonly string[]): Promise<ReadonlyMap<string, unknown>> {
  const answer = expectAnswer(await session.query({ ids }), 200);
  return new Map(itemsOf(answer).map(({ id, document }) => [String(id), document]));
}

const nested = (levels: number): unknown => JSON.parse("[".repeat(levels) + "]".repeat(levels));

const values: readonly Scenario<BrokerWorld>[] = [
  scenario("3.1", "values", "every value comes back as it was sent, escapes and odd keys among them", async (world) => {
    const session = await Session.inNewSpace(world);
    const { accept } = readVectors<ValueVectors>("spaces-values");
    const entries = accept.map(({ text }, n) => [`v:${n}`, text] as const);
    const answer = expectAccepted(await setRaw(session, 1, entries));
    const documents = await documentsOf(
      session,
      entries.map(([id]) => id),
    );
    for (const [n, { name, text, stored = text }] of accept.entries()) {
      expectSameJson(documents.get(`v:${n}`), { value: parseOwnJsonText(stored) }, name, answer.request);
    }
  }),
  scenario(
    "3.1",
    "refused-values",
    "what has no form, or not its one form, is 400 and consumes nothing",
    async (world) => {
      const session = await Session.inNewSpace(world);
      for (const { text, error } of readVectors<ValueVectors>("spaces-values").refuse) {
        expectRefusal(await setRaw(session, 1, [["v:1", text]]), 400, error);
      }
      expectRefusal(await session.entity("v:1"), 404, "entity_not_found");
      expectAccepted(await setRaw(session, 1, [["v:1", "1"]]));
    },
  ),
  scenario("3.1", "entity-ids", "an entity id is scheme:rest, 1–512 characters", async (world) => {
    const session = await Session.inNewSpace(world);
    const { ids, not_ids: notIds } = readVectors<ValueVectors>("spaces-values");
    const longest = `a:${"x".repeat(510)}`;
    await session.accept([...ids, longest].map((id) => set(id, id)));
    for (const id of [...ids, longest]) await session.expectValue(id, id);
    for (const id of [...notIds, `${longest}x`]) expectRefusal(await session.commit([set(id, 1)]), 400);
  }),
  scenario("3.1", "depth", "a document has at most 128 levels", async (world) => {
    const session = await Session.inNewSpace(world);
    await session.accept([set("deep:1", nested(levelsMax - 1))]);
    await session.expectValue("deep:1", nested(levelsMax - 1));
    expectRefusal(await session.commit([set("deep:2", nested(levelsMax))]), 400, "too_deep");
  }),
  scenario("3.1", "sizes", "a document has at most 1 MiB, a commit 4 MiB", async (world) => {
    const session = await Session.inNewSpace(world);
    const text = "x".repeat(documentBytesMax - '{"value":""}'.length);
    await session.accept([set("big:1", text)]);
    expectRefusal(await session.commit([set("big:2", `${text}x`)]), 413, "payload_too_large");
    const growing = patch("big:1", add("/more", "x"));
    expectRefusal(await session.commit([growing]), 422, "patch_error", { reason: "too_large" });
    const half = "x".repeat(documentBytesMax / 2);
    const many = Array.from({ length: 9 }, (_, n) => set(`half:${n}`, half));
    expectRefusal(await session.commit(many), 413, "payload_too_large");
    expectRefusal(await session.entity("half:0"), 404, "entity_not_found");
  }),
];

const patches: readonly Scenario<BrokerWorld>[] = [
  scenario("3.1", "patches", "patches do what the vectors say, one after the other", async (world) => {
    const session = await Session.inNewSpace(world);
    const fitting = patchCases().filter(({ after }) => after !== undefined);
    await session.accept(documentsToPatch(fitting));
    const seq = await session.accept(fitting.map(({ patches: list }, n) => patch(`p:${n}`, ...list)));
    const documents = await documentsOf(
      session,
      fitting.map((_, n) => `p:${n}`),
    );
    for (const [n, { name, after }] of fitting.entries()) {
      expectSameJson(documents.get(`p:${n}`), after, name, `commit ${seq} in ${session.space}, entity p:${n}`);
    }
  }),
  scenario(
    "3.1",
    "patch-errors",
    "a patch that fails rejects the commit with PatchError, and names itself",
    async (world) => {
      const session = await Session.inNewSpace(world);
      const failing = patchCases().filter(({ after }) => after === undefined);
      await session.accept(documentsToPatch(failing));
      await inSessions(
        world,
        session.space,
        failing,
        async (each, { patches: list, patchIndex = 0, reason = "" }, n) => {
          const { op = "", path = "" } = list[patchIndex] ?? {};
          const where = { operationIndex: 1, patchIndex, op, path, reason };
          const answer = await each.commit([set("beside:1", n), patch(`p:${n}`, ...list)]);
          expectRefusal(answer, 422, "patch_error", where);
        },
      );
      expectRefusal(await session.entity("beside:1"), 404, "entity_not_found");
      const documents = await documentsOf(
        session,
        failing.map((_, n) => `p:${n}`),
      );
      for (const [n, { name, document }] of failing.entries()) {
        if (document !== null) expectSameJson(documents.get(`p:${n}`), document, name, `entity p:${n}`);
      }
    },
  ),
  scenario(
    "3.1",
    "operations",
    "a commit has an operation or a send, and an operation its own fields only",
    async (world) => {
      const session = await Session.inNewSpace(world);
      const wrong: readonly (readonly [Operation[], string])[] = [
        [[], "invalid_request"],
        [[{ op: "set", id: "a:1" }], "invalid_request"],
        [[{ op: "set", id: "a:1", value: [] }], "invalid_request"],
        [[{ ...set("a:1", 1), patches: [add("/a", 1)] }], "unknown_field"],
        [[{ op: "launch", id: "a:1" }], "invalid_request"],
        [[{ ...remove("a:1"), value: {} }], "unknown_field"],
        [[patch("a:1")], "invalid_request"],
        [[patch("a:1", { op: "copy", from: "/a", path: "/b" })], "invalid_request"],
        [[patch("a:1", { op: "add", path: "/a" })], "invalid_request"],
        [[patch("a:1", { ...add("/a", 1), from: "/b" })], "unknown_field"],
        [[patch("a:1", { ...add("/a", 1), colour: 1 })], "unknown_field"],
        [[patch("a:1", replace("value", 1))], "invalid_request"],
        [[patch("a:1", replace("/a~2", 1))], "invalid_request"],
      ];
      for (const [operations, error] of wrong) {
        expectRefusal(await session.commit(operations, { localSeq: 1 }), 400, error);
      }
      expectAccepted(await session.commit([set("a:1", 1)], { localSeq: 1 }));
    },
  ),
  scenario("3.1", "delete", "a deleted entity can be set and patched anew", async (world) => {
    const session = await Session.inNewSpace(world);
    await session.accept([set("a:1", 1)]);
    const seq = await session.accept([remove("a:1")]);
    expectAnswer(await session.entity("a:1"), 200, { id: "a:1", seq, deleted: true });
    await session.accept([patch("a:1", add("/value", 2))]);
    await session.expectValue("a:1", 2);
    await session.accept([remove("a:1"), set("a:1", 3), patch("a:1", replace("/value", 4))]);
    await session.expectValue("a:1", 4);
  }),
  scenario("3.1", "metadata", "paths start at the document's root, and metadata stands beside value", async (world) => {
    const space = await createSpace(world);
    const session = await Session.open(world, world.alice, space);
    await session.accept([{ op: "set", id: "a:1", value: { value: 1, note: "x" } }]);
    await session.accept([patch("a:1", replace("/note", "y"))]);
    const answer = expectAnswer(await session.entity("a:1"), 200, { document: { value: 1, note: aText } });
    expectSameJson(answer.body.document, { value: 1, note: "y" }, "the document", answer.request);
  }),
];

function documentsToPatch(cases: readonly PatchCase[]): readonly Operation[] {
  const there: Operation[] = [set("beside:0", 0)];
  for (const [n, { document }] of cases.entries()) {
    if (document !== null) there.push({ op: "set", id: `p:${n}`, value: document });
  }
  return there;
}

export const valueScenarios: readonly Scenario<BrokerWorld>[] = [...values, ...patches];

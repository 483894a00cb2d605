// Faults in the code of spaces, registrar and once, each with the oracles that may name it; as known-bad.ts has them for
// messages.
import { hash } from "node:crypto";
import type { SpacesStore, SpaceTransaction } from "@claudemesh/spaces/ports";
import { ready } from "@claudemesh/spaces/ports/flow";
import type { Disk } from "../world/disk.ts";
import type { Plants } from "../world/world.ts";
import type { KnownBad } from "./known-bad.ts";

type Input = Readonly<Record<string, unknown>>;

const inTransaction = (plant: (tx: SpaceTransaction) => Partial<SpaceTransaction>): Plants => ({
  spaces: (store: SpacesStore) => ({
    ...store,
    transact: (space, body, alone) => store.transact(space, (tx) => body({ ...tx, ...plant(tx) }), alone),
  }),
});

const original = "SELECT original FROM space_commit WHERE session_id = ? AND local_seq = ?";

/** What was decided under this number, instead of what comes now. */
function asDecided(input: Input, disk: Disk): Input {
  const { commit, sessionId } = input as { readonly commit: Input; readonly sessionId: string };
  const row = disk.sql<{ original: string }>(original).get(sessionId, Number(commit.localSeq));
  return row === undefined ? input : { ...input, commit: JSON.parse(row.original) as object };
}

const latestToken = new WeakMap<Disk, Map<string, string>>();

export const knownBadAgents: readonly KnownBad[] = [
  {
    what: "a commit that comes again is not compared with what it repeats",
    named: ["verdict_wrong"],
    plants: {
      run: (run, disk) => (type, caller, input) =>
        run(type, caller, type === "space.commit" ? asDecided(input as Input, disk) : input),
    },
  },
  {
    what: "the token of a session that was opened again is as good as the new one",
    named: ["session_stolen"],
    plants: {
      run: (run, disk) => async (type, caller, input) => {
        const tokens = latestToken.get(disk) ?? new Map<string, string>();
        latestToken.set(disk, tokens);
        const { sessionId = "", sessionToken } = input as {
          readonly sessionId?: string;
          readonly sessionToken?: string;
        };
        const token = tokens.get(sessionId) ?? sessionToken;
        const answer = await run(type, caller, type === "space.commit" ? { ...input, sessionToken: token } : input);
        const opened = answer.body as { readonly sessionId?: string; readonly sessionToken?: string };
        if (type === "space.open" && answer.status === 200) {
          tokens.set(String(opened.sessionId), String(opened.sessionToken));
        }
        return answer;
      },
    },
  },
  {
    what: "a rejection is reported and not written",
    named: ["verdict_wrong"],
    plants: inTransaction(() => ({ writeRejected: () => ready(() => undefined) })),
  },
  {
    what: "a commit is accepted whatever was written since it read",
    named: ["not_serializable"],
    plants: inTransaction(({ present }) => ({
      present: { ...present, laterWrites: (asks) => ready(() => asks.map(() => ({ writes: [], cut: false }))) },
    })),
  },
  {
    what: "messages of a commit are answered as accepted and not written",
    named: ["sends_torn"],
    plants: inTransaction(() => ({ acceptSends: () => ready(() => ({ type: "accepted", recipients: [] })) })),
  },
  {
    what: "changes of an entity are read without the last",
    named: ["state_wrong", "not_settled", "not_serializable"],
    plants: {
      spaces: (store) => ({
        ...store,
        read: (space, body) =>
          store.read(space, (view) =>
            body({
              ...view,
              readTails: function* (asks, limit) {
                const tails = yield* view.readTails(asks, limit);
                return tails.map((tail) => ({ ...tail, revisions: tail.revisions.slice(0, -1) }));
              },
            }),
          ),
      }),
    },
  },
  {
    what: "an effect is unique for each attempt, not for all of them",
    named: ["registered_wrongly"],
    plants: {
      registrar: (store) => ({
        ...store,
        requests: {
          ...store.requests,
          consume: (request, nowMs) => {
            const effectKey = hash("sha256", `${request.attemptId}`, "buffer");
            return store.requests.consume({ ...request, effectKey }, nowMs);
          },
        },
      }),
    },
  },
  {
    what: "a refusal of the registrar is not audited",
    named: ["refusal_unaudited"],
    plants: { registrar: (store) => ({ ...store, audit: { ...store.audit, refuse: async () => undefined } }) },
  },
  {
    what: "a lease that has ended frees its key",
    named: ["once_broken"],
    plants: {
      once: (store, disk) => ({
        ...store,
        claim: (key, claim, nowMs) => {
          const over = "key = ? AND settled_how IS NULL AND lease_until <= ?";
          const settled = "settled_how = 'resolved_not_done', settled_by = 'nobody', settled_at = ?";
          disk.transaction(() => {
            disk.sql(`UPDATE once_claim SET ${settled} WHERE ${over}`).run(nowMs, key.key, nowMs);
          });
          return store.claim(key, claim, nowMs);
        },
      }),
    },
  },
];

// Draws what one agent does at one moment of a plan.
import type { AgentOperation, SpaceSend } from "./agent-operations.ts";
import { between, type Random } from "./chance.ts";
import { queueNames, type Settings, topicNames } from "./plan.ts";
import { weighted } from "./weighted.ts";

type At = Pick<AgentOperation, "atMs" | "number" | "agent">;

export function drawAgentOperation(random: Random, settings: Settings, at: At): AgentOperation {
  const pick = random.below(1_000_000);
  return weighted<AgentOperation>(random, [
    [42, () => drawTransact(random, at)],
    [4, () => ({ ...at, kind: "branch", pick, deletes: random.next() < 0.3 })],
    [4, () => ({ ...at, kind: "merge", salt: pick })],
    [3, () => ({ ...at, kind: "takeover" })],
    [5, () => ({ ...at, kind: "replay", pick, altered: random.next() < 0.3 })],
    [3, () => ({ ...at, kind: "read_past", pick })],
    [8, () => ({ ...at, kind: "register", passes: random.next() < 0.8 })],
    [4, () => ({ ...at, kind: "register_again", pick, freshApproval: random.next() < 0.4 })],
    [3, () => ({ ...at, kind: "collide", how: random.pick(["same_request", "same_effect", "same_nonce"]) })],
    [
      4,
      () => ({
        ...at,
        kind: "misuse",
        pick,
        how: random.pick(["other_effect", "wrong_nonce", "spent_nonce", "revoked", "expired", "same_effect"]),
      }),
    ],
    [3, () => ({ ...at, kind: "compensate", pick, twice: random.next() < 0.4 })],
    [2, () => ({ ...at, kind: "status", pick })],
    [12, () => drawOnce(random, settings, at)],
    [3, () => ({ ...at, kind: "resolve", pick })],
  ]);
}

function drawTransact(random: Random, at: At): AgentOperation {
  const sends = random.next() < 0.2 ? Array.from({ length: between(random, 1, 3) }, () => drawSend(random)) : [];
  return {
    ...at,
    kind: "transact",
    salt: random.below(2 ** 31),
    stacked: random.next() < 0.6 ? 1 : between(random, 2, 4),
    together: random.next() < 0.3,
    branch: random.next() < 0.75 ? 0 : 1 + random.below(1_000),
    sends,
    retries: random.pick([0, 2, 5]),
  };
}

function drawSend(random: Random): SpaceSend {
  return weighted<SpaceSend>(random, [
    [50, () => ({ kind: "topic", topic: random.below(topicNames.length) })],
    [30, () => ({ kind: "queue", queue: random.below(queueNames.length) })],
    [8, () => ({ kind: "nowhere" })],
    [8, () => ({ kind: "used_id" })],
  ]);
}

/** Keys are used by several for a while, and then others are. */
function drawOnce(random: Random, { roundHours }: Settings, at: At): AgentOperation {
  const slot = Math.floor(at.atMs / (roundHours * 600_000));
  const longMs = random.next() < 0.3 ? between(random, 20_000, 90_000) : between(random, 0, 5_000);
  return {
    ...at,
    kind: "once",
    key: slot * 3 + random.below(4),
    otherInputs: random.next() < 0.05,
    leaseSeconds: random.pick([5, 10, 30, 60]),
    thinkMs: longMs,
    waits: random.next() < 0.7,
    fate: weighted<"works" | "dies_before" | "dies_after" | "declines" | "fails">(random, [
      [60, () => "works"],
      [10, () => "dies_before"],
      [10, () => "dies_after"],
      [8, () => "declines"],
      [8, () => "fails"],
    ]),
    downMs: between(random, 50, 60_000),
  };
}

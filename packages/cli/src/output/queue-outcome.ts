// What became of messages of a queue, in words: what the broker answered, which may be less than was asked for.
import type { Settlements } from "@claudemesh/client/daemon";

type Settlement = Settlements["items"][number]["settlement"];

const outcomes: Record<Settlement, { readonly now: string; readonly before: string }> = {
  acked: { now: "done", before: "acknowledged with this token before: that stands" },
  nacked: { now: "given back", before: "given back with this token before: that stands" },
};

/** The first settlement under a token stands, whatever is asked for later. */
export function describeSettled(asked: Settlement, { items }: Settlements): string {
  const before: Settlement = asked === "acked" ? "nacked" : "acked";
  const count = (settlement: Settlement) => items.filter((item) => item.settlement === settlement).length;
  const parts = [
    sentence(count(asked), "is", "are", outcomes[asked].now),
    sentence(count(before), "was", "were", outcomes[before].before),
  ];
  return parts.filter((part) => part !== "").join(" ");
}

export function describeRevived(queue: string, brokerMessageIds: readonly string[], revived: number): string {
  const others = new Set(brokerMessageIds).size - revived;
  const parts = [
    sentence(revived, "waits", "wait", `in ${queue} again`),
    sentence(others, "was", "were", "not parked: nothing changed there"),
  ];
  return parts.filter((part) => part !== "").join(" ");
}

/** Empty where there is nothing to speak of. */
function sentence(count: number, one: string, many: string, rest: string): string {
  if (count === 0) return "";
  return `${count === 1 ? `1 message ${one}` : `${count} messages ${many}`} ${rest}.`;
}

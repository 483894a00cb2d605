// What the sender of a queued message hears about its way: that it waits here, and why, or that no member is going to read it.
import type { SendBody } from "@claudemesh/client/daemon";
import { formatTime } from "./times.ts";

type Way = Pick<SendBody, "broker" | "rate_limited" | "membership_ended_at" | "subscribers">;

export function describeWay({ broker, rate_limited, membership_ended_at: endedAt, subscribers }: Way): string[] {
  const lines: string[] = [];
  if (broker === "away") lines.push("The broker is away: the message waits on this host until it is back.");
  if (endedAt !== undefined) {
    lines.push(
      `This member was removed from the mesh on ${formatTime(endedAt)}: the message waits until it is too old.`,
    );
  }
  if (rate_limited !== undefined) {
    const { since, until } = rate_limited;
    lines.push(`The mesh's budget is spent since ${formatTime(since)}: the message waits until ${formatTime(until)}.`);
  }
  if (subscribers === 0) lines.push("Nobody else is subscribed to this topic now: the message may reach nobody.");
  return lines;
}

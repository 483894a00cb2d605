// One pass of sweeping over all that a broker keeps: messages and what belongs to them, then sessions of spaces. In
// small steps, each of which says what has gone.
import type { SweepKind } from "@claudemesh/messages/ports/housekeeping";
import { type SweepPorts, sweep } from "@claudemesh/messages/services/sweep";
import type { SpacesStore } from "@claudemesh/spaces/ports";
import { sweepSessions } from "@claudemesh/spaces/services/spaces";

/** Rows that went, by what they were; those that are not named are none. */
export type Swept = Readonly<Partial<Record<SweepKind | "space_sessions", number>>>;

export type SweepEverythingPorts = {
  readonly messages: SweepPorts;
  readonly spaces: Pick<SpacesStore, "sweepSessions">;
};

export async function* sweepEverything(
  { messages, spaces }: SweepEverythingPorts,
  options: { readonly forgetting: boolean },
): AsyncGenerator<Swept, void> {
  yield* sweep(messages, options);
  if (!options.forgetting) return;
  for await (const sessions of sweepSessions({ store: spaces, nowMs: messages.nowMs })) {
    yield { space_sessions: sessions };
  }
}

export function addSwept(a: Swept, b: Swept): Swept {
  const sum: Record<string, number> = { ...a };
  for (const [kind, rows] of Object.entries(b)) if (rows > 0) sum[kind] = (sum[kind] ?? 0) + rows;
  return sum;
}

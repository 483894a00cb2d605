// What time it is at the broker, to the second, as its HTTP server says it. Nothing in the product depends on it: times
// that matter are compared with a margin. It is for people who look for a clock that is wrong.
import { brokerHttpUrl } from "./broker-url.ts";

const timeoutMs = 5_000;

/** How far this machine's clock is ahead of the broker's; undefined where the broker does not say. */
export async function measureClockOffset(broker: string, nowMs: () => number = Date.now): Promise<number | undefined> {
  const askedAtMs = nowMs();
  let said: string | null;
  try {
    const response = await fetch(brokerHttpUrl(broker, "/healthz"), {
      redirect: "manual",
      signal: AbortSignal.timeout(timeoutMs),
    });
    await response.body?.cancel();
    said = response.headers.get("date");
  } catch (error) {
    if (error instanceof TypeError || error instanceof DOMException) return undefined;
    throw error;
  }
  const brokerMs = Date.parse(said ?? "");
  if (Number.isNaN(brokerMs)) return undefined;
  // The header leaves out what has passed of its second, and the answer was under way for a while.
  return Math.round((askedAtMs + nowMs()) / 2 - (brokerMs + 500));
}

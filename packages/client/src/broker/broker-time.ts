// The broker's time, to the second, from the Date header of its HTTP server. Nothing in the product depends on it,
// because times that matter are compared with a margin. It helps people to find a clock that is wrong.
import { brokerHttpUrl } from "./broker-url.ts";

const timeoutMs = 5_000;

/** How far this machine's clock is ahead of the broker's; undefined where the broker does not say. */
export async function measureClockOffset(broker: string, nowMs: () => number = Date.now): Promise<number | undefined> {
  const askedAtMs = nowMs();
  let dateHeader: string | null;
  try {
    const response = await fetch(brokerHttpUrl(broker, "/healthz"), {
      redirect: "manual",
      signal: AbortSignal.timeout(timeoutMs),
    });
    await response.body?.cancel();
    dateHeader = response.headers.get("date");
  } catch (error) {
    if (error instanceof TypeError || error instanceof DOMException) return undefined;
    throw error;
  }
  const brokerMs = Date.parse(dateHeader ?? "");
  if (Number.isNaN(brokerMs)) return undefined;
  // The header drops the fraction of its second, and the answer took some time to arrive.
  return Math.round((askedAtMs + nowMs()) / 2 - (brokerMs + 500));
}

import { expect, test } from "vitest";
import { describeRevived, describeSettled } from "./queue-outcome.ts";

const settled = (...settlements: ("acked" | "nacked")[]) => ({
  items: settlements.map((settlement, index) => ({ broker_message_id: `b${index}`, settlement })),
});

test("what was settled as asked is said so, with its number", () => {
  expect(describeSettled("acked", settled("acked"))).toBe("1 message is done.");
  expect(describeSettled("nacked", settled("nacked", "nacked"))).toBe("2 messages are given back.");
});

test("what the token had settled otherwise is not said to be as asked", () => {
  expect(describeSettled("nacked", settled("acked"))).toBe(
    "1 message was acknowledged with this token before: that stands.",
  );
  expect(describeSettled("acked", settled("nacked", "acked", "nacked"))).toBe(
    "1 message is done. 2 messages were given back with this token before: that stands.",
  );
});

test("only what was parked is said to wait again", () => {
  expect(describeRevived("builds", ["a"], 1)).toBe("1 message waits in builds again.");
  expect(describeRevived("builds", ["a", "b", "b"], 2)).toBe("2 messages wait in builds again.");
  expect(describeRevived("builds", ["a"], 0)).toBe("1 message was not parked: nothing changed there.");
  expect(describeRevived("builds", ["a", "b", "c"], 1)).toBe(
    "1 message waits in builds again. 2 messages were not parked: nothing changed there.",
  );
});

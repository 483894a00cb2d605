import { outboxStatuses } from "@claudemesh/protocol/messages/outbox-row";
import { describe, expect, it } from "vitest";
import { decideRequeue } from "./requeue.ts";

const unsure = { provenUncommitted: false, despiteUnknownFate: false };
const refused = { attempts: 2, unanswered: 0, fenced: false };
const unknown = { attempts: 2, unanswered: 1, fenced: false };

describe("the decision to requeue", () => {
  it("lets only dead and pending rows go, whatever is known or accepted", () => {
    const certain = { provenUncommitted: true, despiteUnknownFate: true };
    const going = outboxStatuses.filter((status) => decideRequeue({ status, ...refused }, certain) === "go");
    expect(going).toEqual(["pending", "dead"]);
    for (const status of ["inflight", "done", "aborted"] as const) {
      expect(decideRequeue({ status, ...refused }, unsure)).toBe("not_requeueable");
    }
  });

  it.each(["pending", "dead"] as const)("asks for proof where the fate of a %s row is unknown", (status) => {
    expect(decideRequeue({ status, ...unknown }, unsure)).toBe("fate_unknown");
    expect(decideRequeue({ status, ...unknown }, { ...unsure, provenUncommitted: true })).toBe("go");
    expect(decideRequeue({ status, ...unknown }, { ...unsure, despiteUnknownFate: true })).toBe("go");
  });

  it.each([
    ["never sent", { attempts: 0, unanswered: 0, fenced: false }],
    ["refused every time", refused],
    ["fenced", { ...unknown, fenced: true }],
  ])("needs no proof for a row that was %s", (_, facts) => {
    expect(decideRequeue({ status: "pending", ...facts }, unsure)).toBe("go");
    expect(decideRequeue({ status: "dead", ...facts }, unsure)).toBe("go");
  });
});

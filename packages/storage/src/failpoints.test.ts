// The setting's grammar, and that each action does what it says at the hit that was asked for.
import { describe, expect, test } from "vitest";
import { createFailpoints, FailpointSyntaxError, parseFailpoints } from "./failpoints.ts";
import { startStorageProcess } from "./testing/storage-processes.ts";

const names = ["outbox.before_commit", "drain.after_write"] as const;

describe("the setting", () => {
  test("names points, hits and actions", () => {
    expect(parseFailpoints("outbox.before_commit@3=crash, drain.after_write=delay:25", names)).toEqual([
      { name: "outbox.before_commit", hitNumber: 3, action: { do: "crash" } },
      { name: "drain.after_write", hitNumber: undefined, action: { do: "delay", delayMs: 25 } },
    ]);
    expect(parseFailpoints(" ", names)).toEqual([]);
  });

  test.each([
    "outbox.before_commit",
    "outbox.before_commit=",
    "outbox.before_commit=explode",
    "outbox.before_commit@0=crash",
    "outbox.before_commit@=crash",
    "outbox.before_commit@-1=crash",
    "outbox.before_commit=delay",
    "outbox.before_commit=delay:",
    "outbox.before_commit=delay:-5",
    "outbox.before_commit=delay:1.5",
    "outbox.before_commit=crash,",
    ",outbox.before_commit=crash",
    "outbox.before_commit=crash;drain.after_write=crash",
    "Outbox.before_commit=crash",
  ])("is refused when it is not well formed: %s", (text) => {
    expect(() => parseFailpoints(text, names)).toThrow(FailpointSyntaxError);
  });

  test("is refused, with the names that exist, when a name is misspelt", () => {
    expect(() => parseFailpoints("outbox.before_comit=crash", names)).toThrow(/no fault point.*outbox\.before_commit/);
  });
});

describe("fault points", () => {
  test("that are off do nothing and say so", async () => {
    const failpoints = createFailpoints(parseFailpoints("", names));
    expect(failpoints.active).toBe(false);
    expect(failpoints.hit("drain.after_write")).toBeUndefined();
    failpoints.hitSync("drain.after_write");
    expect(failpoints.describe()).toBe("no fault points set");
  });

  test("say what is set", () => {
    const text = "outbox.before_commit@2=error, drain.after_write=delay:1";
    const failpoints = createFailpoints(parseFailpoints(text, names));
    expect(failpoints.active).toBe(true);
    expect(failpoints.describe()).toBe(`fault points set: ${text}`);
  });

  test("fail at the hit that was asked for, and only there", async () => {
    const failpoints = createFailpoints(parseFailpoints("drain.after_write@2=error", names));
    await failpoints.hit("drain.after_write");
    failpoints.hitSync("outbox.before_commit");
    await expect(failpoints.hit("drain.after_write")).rejects.toMatchObject({ kind: "io" });
    failpoints.hitSync("drain.after_write");
  });

  test("fail at every hit where no number is given", () => {
    const failpoints = createFailpoints(parseFailpoints("outbox.before_commit=error", names));
    for (let hit = 0; hit < 3; hit += 1) expect(() => failpoints.hitSync("outbox.before_commit")).toThrow();
  });

  test("wait and then go on, blocking or not", async () => {
    const failpoints = createFailpoints(parseFailpoints("drain.after_write=delay:5", names));
    const order: string[] = [];
    const waited = Promise.resolve(failpoints.hit("drain.after_write")).then(() => order.push("waited"));
    order.push("went on");
    failpoints.hitSync("drain.after_write");
    order.push("blocked");
    await waited;
    expect(order).toEqual(["went on", "blocked", "waited"]);
  });

  test.each(["demo.sync@2=crash", "demo.async@2=crash"])(
    "kill the process at the hit and not later: %s",
    async (rules) => {
      const victim = startStorageProcess("crashAtFailpoint", rules);
      expect(await victim.ended).toBe("SIGKILL");
      expect(victim.lines).toEqual(["survived 1"]);
    },
  );
});

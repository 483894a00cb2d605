// SIGKILL around the commit of a real process: what was answered is there, what was not is there whole or not at all,
// and sending everything again ends with each commit and each send once.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { readLog } from "../../services/query.ts";
import type { CommitProcessWork } from "../../testing/commit-process.ts";
import { alice, patch, send, set, type World } from "./world.ts";

const script = fileURLToPath(new URL("../../testing/commit-process.ts", import.meta.url));
const commitCount = 8;

export function describeCrashes(world: () => World, address: () => string): void {
  test.each(["commit.before_commit@4=crash", "commit.after_commit@4=crash"])(
    "killed at %s: nothing answered is lost, and nothing happens twice",
    async (faults) => {
      const session = await world().session();
      const commits = Array.from({ length: commitCount }, (_, n) =>
        session.build(
          n === 0 ? [set("list:1", { items: [] })] : [patch("list:1", { op: "add", path: "/value/items/-", value: n })],
          { sends: [send(`m${n}`)] },
        ),
      );
      const { sessionId, sessionToken } = session.opened;
      const work: CommitProcessWork = { space: world().space, member: alice, sessionId, sessionToken, commits };
      const { answered, signal } = await runProcess(address(), faults, work);
      expect([answered, signal]).toEqual([3, "SIGKILL"]);

      const { items } = await readLog(world().ports(), world().space, { after: 0 }, 100);
      const expected = faults.startsWith("commit.before") ? 3 : 4;
      expect(items).toHaveLength(expected);
      expect(await world().sent()).toHaveLength(expected);

      const verdicts = [];
      for (const commit of commits) verdicts.push(await session.send(commit));
      expect(verdicts.map((verdict) => verdict.replayed)).toEqual(commits.map((_, n) => n < expected));
      expect(verdicts.map((verdict) => verdict.type === "accepted" && verdict.seq)).toEqual(
        commits.map((_, n) => n + 1),
      );
      expect(await world().sent()).toEqual(commits.map((_, n) => `m${n}`));
      expect(await world().document("list:1")).toEqual({ value: { items: [1, 2, 3, 4, 5, 6, 7] } });
    },
  );
}

async function runProcess(address: string, faults: string, work: CommitProcessWork) {
  const child = spawn(process.execPath, [script, address, faults, JSON.stringify(work)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let output = "";
  child.stdout.on("data", (chunk) => {
    output += String(chunk);
  });
  const [, signal] = await once(child, "close");
  return { answered: output.split("\n").length - 1, signal };
}

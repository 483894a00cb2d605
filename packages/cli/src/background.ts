// Starts this same program as a process of its own, waits until it says that it is ready, and leaves it running.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

export async function startInBackground(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  logPath: string,
): Promise<Record<string, unknown>> {
  const launcher = fileURLToPath(new URL("../bin/claudemesh.js", import.meta.url));
  const child = spawn(process.execPath, [launcher, ...args], {
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
    env,
    cwd: "/",
  });
  let complaint = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    complaint = (complaint + text).slice(-4_096);
  });
  const ended = new Promise<never>((_, reject) => {
    child.once("error", reject);
    child.once("exit", () => {
      reject(new Error(complaint.trim().replace(/^claudemesh: /, "") || `It ended at once; see ${logPath}.`));
    });
  });
  const ready = (async () => {
    for await (const line of createInterface({ input: child.stdout })) {
      const value = JSON.parse(line) as Record<string, unknown>;
      if (value.event === "ready") return value;
    }
    return ended;
  })();
  const value = await Promise.race([ready, ended]);
  child.removeAllListeners("exit");
  child.stdout.destroy();
  child.stderr.destroy();
  child.unref();
  return value;
}

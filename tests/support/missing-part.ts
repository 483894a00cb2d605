// What a test does where something that it needs is not on this machine: it is skipped and says why, unless everything is
// required to be there. Then it fails, so that no run passes for having examined nothing.
import process from "node:process";
import type { TestContext } from "vitest";

export function skipUnlessRequired(context: TestContext, reason: string): never {
  if (process.env.CLAUDEMESH_REQUIRE_SERVICES === "1") throw new Error(reason);
  return context.skip(reason);
}

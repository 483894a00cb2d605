// `npm run known-bad [name…]`: plants each known fault in a copy of the workspace and expects the ordinary tests to
// refuse it. First the same tests run on the unbroken copy, since a test that fails anyway catches nothing.
import { join } from "node:path";
import { createBadCopy, filesOf } from "./known-bad/bad-copy.ts";
import type { KnownBad } from "./known-bad/fault.ts";
import { knownBad } from "./known-bad/faults.ts";

const names = process.argv.slice(2);
const chosen = names.length === 0 ? knownBad : names.map(faultNamed);
const copy = createBadCopy(join(import.meta.dirname, ".."));
process.on("exit", copy.remove);
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => process.exit(1));

const sound = copy.run([], filesOf(chosen), false);
if (sound.passed === 0 || sound.failed.length + sound.broken.length > 0) {
  console.error(sound.output);
  console.error(
    `The unbroken copy: ${sound.passed} tests passed. Failed: ${[...sound.failed, ...sound.broken].join(", ")}.`,
  );
  process.exit(1);
}
console.log(`unbroken: ${sound.passed} tests pass`);

const missed = chosen.filter((fault) => !isCaught(fault));
console.log(`${chosen.length - missed.length} of ${chosen.length} known faults are caught by the ordinary tests.`);
if (missed.length > 0) {
  console.error(`Not caught: ${missed.map(({ name }) => name).join(", ")}. What was missed is a missing test.`);
  process.exitCode = 1;
}

function isCaught(fault: KnownBad): boolean {
  const { failed, broken, skipped } = copy.run(fault.edits, filesOf([fault]), true);
  const missing = [...skipped].filter((name) => !sound.skipped.has(name));
  if (failed.length > 0) console.log(`caught   ${fault.name}: ${failed[0]}`);
  else if (broken.length > 0) console.log(`no build ${fault.name}: ${broken[0]} does not load, so the fault never ran`);
  else if (missing.length > 0) console.log(`unjudged ${fault.name}: ${missing.length} tests lacked what they need`);
  else console.log(`MISSED   ${fault.name}: ${fault.harm}`);
  return failed.length > 0;
}

function faultNamed(name: string): KnownBad {
  const fault = knownBad.find((one) => one.name === name);
  if (fault !== undefined) return fault;
  console.error(`There is no known fault "${name}". There are: ${knownBad.map((one) => one.name).join(", ")}.`);
  process.exit(2);
}

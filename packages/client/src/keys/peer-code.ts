// The code that two members compare by voice: it is the same on both sides only if each has the other's own key. A
// broker that wanted to stand between them would need two keys of its own that give one code, so computing a code is
// slow on purpose.
// Why: docs/decisions/0126.
import { pbkdf2 } from "node:crypto";
import { promisify } from "node:util";

const derive = promisify(pbkdf2);
const label = "claudemesh-peer-code-1";
const rounds = 200_000;
const groups = 8;

/** Eight groups of five digits. Both keys are in lower-case hex, and their order does not matter. */
export async function peerCode(oneKey: string, otherKey: string): Promise<string> {
  const bytes = await derive([oneKey, otherKey].toSorted().join(":"), label, rounds, groups * 4, "sha512");
  return Array.from({ length: groups }, (_, at) => String(bytes.readUInt32BE(at * 4) % 100_000).padStart(5, "0")).join(
    " ",
  );
}

// What a commit will ask for when it is decided, as far as it says so itself. Nothing depends on this being complete: what
// is not foreseen is asked for when it is needed.
import type { ClientCommit } from "@claudemesh/protocol/spaces/commit";
import { defaultBranch } from "@claudemesh/protocol/spaces/entity";
import type { Expected } from "../../ports.ts";
import { patchedFirst } from "./apply.ts";

export function expectedOf({ branch = defaultBranch, reads, operations }: ClientCommit): Expected {
  const branches = new Set([branch]);
  const writes = reads.confirmed.map((read) => {
    const place = read.branch ?? branch;
    branches.add(place);
    return { branch: place, entityId: read.id, afterSeq: read.seq };
  });
  const documents = patchedFirst(operations).map((entityId) => ({ branch, entityId }));
  return { branches: [...branches], writes, documents };
}

// A service in a process of its own, for tests that kill it: commits what its input says, one after the other, each with a
// send, and prints the verdicts as it hears them. Arguments: the store, its fault points, and the work as JSON.
import assert from "node:assert/strict";
import process from "node:process";
import type { EncodedCommit } from "@claudemesh/protocol/spaces/commit";
import { createSyncCommitHooks } from "@claudemesh/storage/commit-hooks";
import { failpointNames } from "@claudemesh/storage/failpoint-names";
import { createFailpoints, parseFailpoints } from "@claudemesh/storage/failpoints";
import { GroupCommit } from "@claudemesh/storage/group-commit";
import { openPostgres } from "@claudemesh/storage/postgres";
import { openSqlite } from "@claudemesh/storage/sqlite";
import type { SpaceRef } from "../ports/rows.ts";
import type { SpacesStore } from "../ports.ts";
import { commitToSpace } from "../services/commit/commit.ts";
import { createPostgresSpacesStore } from "../stores/postgres/spaces-store.ts";
import { acceptSends as acceptOnPostgres } from "../stores/postgres/testing/postgres-harness.ts";
import { createSqliteSpacesStore } from "../stores/sqlite/spaces-store.ts";
import { acceptSends as acceptOnSqlite } from "../stores/sqlite/testing/sqlite-harness.ts";
import { schedulePorts } from "./schedule-services.ts";

export type CommitProcessWork = {
  readonly space: SpaceRef;
  readonly member: string;
  readonly sessionId: string;
  readonly sessionToken: string;
  readonly commits: readonly EncodedCommit[];
};

const [address = "", faults = "", text = ""] = process.argv.slice(2);
const failpoints = createFailpoints(parseFailpoints(faults, failpointNames));
const { space, member, sessionId, sessionToken, commits } = JSON.parse(text) as CommitProcessWork;
const ports = schedulePorts(openStore(address), () => "unused");
for (const commit of commits) {
  const verdict = await commitToSpace(ports, space, member, { sessionId, sessionToken, commit });
  assert(verdict.type === "accepted");
  process.stdout.write(`${commit.localSeq} ${verdict.seq}\n`);
}
process.exit(0);

function openStore(url: string): SpacesStore {
  const hooks = createSyncCommitHooks(failpoints);
  if (url.startsWith("postgres:")) {
    const pool = openPostgres({ url, poolSize: 2, onIdleError: () => undefined });
    return createPostgresSpacesStore({ committing: pool, common: pool }, { acceptSends: acceptOnPostgres, hooks });
  }
  const db = openSqlite({ path: url, mustExist: true });
  return createSqliteSpacesStore(db, new GroupCommit(db, { hooks }), { acceptSends: acceptOnSqlite });
}

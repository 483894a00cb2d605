// The commit that all of the spaces' benchmark makes: one field read and replaced in a small document. Also what its rows
// hold, for callers that write the same rows without a service.
import type { EncodedCommit } from "@claudemesh/protocol/spaces/commit";

export const benchSpace = "bench";
export const patchesPerSnapshot = 10;

export type BenchSpace = { readonly meshId: string; readonly member: string };

export const benchDocument = {
  value: { title: "Write the page on spaces", owner: "nobody", state: "open", tags: ["docs", "spaces"], n: 0 },
};

export const entityOf = (session: number): string => `task:${String(session).padStart(6, "0")}`;
export const sessionIdOf = (session: number): string => `01900000-0000-7000-8000-${String(session).padStart(12, "0")}`;

const path = ["value", "n"];
const pointer = "/value/n";

export function setDocument(localSeq: number, ids: readonly string[]): EncodedCommit {
  const operations = ids.map((id) => ({ op: "set" as const, id, value: benchDocument }));
  return { localSeq, reads: { confirmed: [], pending: [] }, operations };
}

/** One read, as of `seq`, and one patch. */
export function patchField(localSeq: number, id: string, seq: number): EncodedCommit {
  return {
    localSeq,
    reads: { confirmed: [{ id, path, seq }], pending: [] },
    operations: [{ op: "patch", id, patches: [{ op: "replace", path: pointer, value: localSeq }] }],
  };
}

/** The texts of an accepted commit's rows. */
export const rowTexts = {
  original: JSON.stringify(patchField(1_000, entityOf(1), 100_000)),
  resolution: JSON.stringify({ seq: 100_000 }),
  result: JSON.stringify({ resolvedPendingReads: [] }),
  body: JSON.stringify([{ op: "replace", path: pointer, value: 1_000 }]),
  footprint: JSON.stringify({ touches: [{ kind: "subtree", path }] }),
  document: JSON.stringify(benchDocument),
} as const;

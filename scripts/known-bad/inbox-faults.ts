// Faults in what a reader of the inbox is given: each hides mail from a program that did nothing wrong.
import type { KnownBad } from "./fault.ts";

const inboxReader = "packages/daemon/src/core/reader-progress.ts";

export const inboxFaults: readonly KnownBad[] = [
  {
    name: "reader-moved-by-an-offer",
    harm: "an answer that is lost on its way takes its messages with it",
    edits: [
      {
        file: inboxReader,
        find: "  return { ...progress, offered: later(progress.offered, upTo) };\n",
        replace:
          "  return { ...progress, position: later(progress.position, upTo), offered: later(progress.offered, upTo) };\n",
      },
    ],
  },
  {
    name: "reader-acknowledges-what-it-was-not-offered",
    harm: "an id from elsewhere passes over mail that no program has seen",
    edits: [
      {
        file: inboxReader,
        find: "  const reached = upTo < progress.offered ? upTo : progress.offered;\n",
        replace: "  const reached = upTo;\n",
      },
    ],
  },
  {
    name: "cancelled-answer-counts-as-received",
    harm: "mail in an answer that the host cancelled is never given again",
    edits: [
      {
        file: "packages/cli/src/mcp/inbox-tools.ts",
        find: "    const isGiven = !isErrorBody(answer.body) && !call.signal.aborted;\n",
        replace: "    const isGiven = !isErrorBody(answer.body);\n",
      },
    ],
  },
];

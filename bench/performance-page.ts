// The text of docs/performance.md around the tables: how it is measured, and how to repeat it. Written by
// `npm run bench -- --write-docs`, so that page and figures cannot drift apart.
import { cleanRoundsMin, stealShareMax } from "./method/rounds.ts";
import { type Drawing, drawReport } from "./plots/draw-plot.ts";
import { renderReport } from "./report.ts";
import type { Scenario, ScenarioReport } from "./scenarios/scenario.ts";

/** Beside the page. */
export const drawingsFolder = "performance";

const method = `## How it is measured

- A round starts fresh processes and files, warms all of them up alike, and then measures one segment after the other:
  the layers alone, and claudemesh. Every second round goes through the segments in reverse.
- On two shared cores the layers of a path add up: the bound is \`D = 1 / Σ(1 / Rᵢ)\`, with each
  rate Rᵢ measured alone in the same round. For one caller it is the sum of the layers' median times.
- HTTP layer: a Fastify route with the same request schema and an answer of the same shape, in Fastify's default
  configuration, without storage. SQLite layer: look up an id and insert its row, in a bare loop on a fresh file with the
  product's own migration; 64 rows per transaction, or one. Sealing: the product's own sealer in a bare loop.
- For the broker the storage layer is the rows of an accept in a bare loop on SQLite, and on PostgreSQL the product's own
  set-based statements on bare connections, with as many sends per batch; the limiter's script in Redis is a layer too.
  Transports alone are a Fastify route and a WebSocket that parse, check and answer.
- The load comes from a process of its own, the same for both HTTP servers: raw sockets, requests formatted in advance.
- A round in which the hypervisor took more than ${stealShareMax * 100} % of the CPU time (\`/proc/stat\`) is dropped. Fewer than ${cleanRoundsMin}
  clean rounds are "inconclusive", and no figure is given.

## Repeat it

\`\`\`
npm install
npm run bench                      the accept path; prints its tables, writes bench/out/
npm run bench -- --all             every scenario, more than an hour
npm run bench -- broker-accept     one of them; npm run bench -- --help lists all
npm run bench -- --quick           shorter rounds and fewer of them, about two minutes
npm run bench -- --write-docs      writes this page; with names, from these and the stored full runs of the others
npm run bench -- --write-docs --no-run   writes it again from the stored runs alone
\`\`\`

Every figure of every round behind this page is in \`bench/reports\`. Nothing else should run on the machine meanwhile. Files go to a folder on disk (\`--dir\` names another); a file system in
memory is refused, because flushing costs nothing there. The broker's scenarios use the PostgreSQL and the Redis that
tests use, and peers on their default ports; what does not answer is skipped, and the table says so.`;

export type PerformancePage = { readonly text: string; readonly drawings: readonly Drawing[] };

/** `missing`: scenarios of which no full run is stored; the page says so instead of leaving them out in silence. */
export function renderPerformancePage(
  reports: readonly ScenarioReport[],
  missing: readonly Pick<Scenario, "name" | "summary">[],
): PerformancePage {
  const sections = reports.map((report) => {
    const drawings = drawReport(report);
    const images = drawings.map(({ file, title }) => `![${title}](${drawingsFolder}/${file})`);
    return { text: renderReport(report, images), drawings };
  });
  const unmeasured = missing.map(({ name, summary }) => `- ${name}: ${summary}`).join("\n");
  const text = [
    "# Performance",
    "What was measured, beside what the layers below allow on the same machine in the same minutes. The figures hold for the machine and versions named with them; the tables are all that is claimed. A line that begins with **pass** or **miss** is a promise, judged on the median; there are few of them, and each holds with room. Every other figure is reported and may move.",
    ...sections.map((section) => section.text),
    ...(missing.length === 0 ? [] : [`## Without a full run\n\nNothing is claimed of these:\n\n${unmeasured}`]),
    method,
  ].join("\n\n");
  return { text: `${text}\n`, drawings: sections.flatMap(({ drawings }) => drawings) };
}

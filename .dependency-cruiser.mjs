// Which part of the workspace may import which, and why. `npm run check` (scripts/checks/imports.ts) runs these rules
// and refuses a run that did not see every source file. A new package gets its line in the table first.

/** package → what it may import besides itself, and the reason that the limit protects. */
const mayImport = {
  protocol: [[], "what both sides agree on stands alone, so that any implementation and any browser can use it"],
  storage: [["protocol"], "opening databases knows nothing of the tables inside"],
  http: [["protocol"], "the shared server frame knows no route, no table and no credential"],
  members: [["protocol", "storage"], "who belongs to a mesh is decided without knowing what members then do"],
  messages: [["protocol", "storage", "members"], "accept and delivery run without a server around them"],
  spaces: [["protocol", "storage", "members"], "sends inside a commit come in through a port, not from messages"],
  registrar: [["protocol", "storage", "members"], "proof of registration depends on no other feature"],
  broker: [
    ["protocol", "storage", "http", "members", "messages", "spaces", "registrar"],
    "the server wires the packages above together and is known to none of them",
  ],
  client: [["protocol"], "an SDK must not drag a server or a database into its user's program"],
  daemon: [
    ["protocol", "storage", "http", "client"],
    "a daemon reaches a broker over the network only, never in process",
  ],
  cli: [["protocol", "http", "client", "daemon", "broker"], "a command calls the SDK, or starts a daemon or a broker"],
  conformance: [["protocol"], "anyone can run it against any implementation, so it knows only the agreement"],
};

const testFile = "\\.test\\.ts$";
/** Suites that several backends run, and what a package's own tests share: beside the source, but test code. */
const testSupport = ["\\.suite\\.ts$", "^packages/.*/(suites|testing)/"];
const testCode = [testFile, ...testSupport, "^packages/simulator/", "^(tests|bench)/"];
const coreRoom = "^packages/[^/]+/src/core/";
/** Built-in modules that compute and touch nothing outside the process. */
const pureBuiltins = "^(node:)?(assert|assert/strict|buffer|crypto|util)$";
const outsideWorld = "^(fastify|pg|redis|ws|pino|prom-client|commander)$";

const tableRules = Object.entries(mayImport).map(([name, [allowed, reason]]) => ({
  name: `${name}-imports`,
  comment: reason,
  severity: "error",
  from: { path: `^packages/${name}/` },
  to: { path: "^packages/", pathNot: `^packages/(${[name, ...allowed].join("|")})/` },
}));

const rules = [
  {
    name: "package-not-in-table",
    comment: "a package gets its line in the table of .dependency-cruiser.mjs before its first import",
    from: { path: "^packages/", pathNot: `^packages/(${[...Object.keys(mayImport), "simulator"].join("|")})/` },
    to: {},
  },
  {
    name: "simulator-is-a-leaf",
    comment: "the simulated world sees everything, so nothing may come to depend on it",
    from: { pathNot: "^packages/simulator/" },
    to: { path: "^packages/simulator/" },
  },
  {
    name: "tests-are-a-leaf",
    comment: "tests/ sees everything; only its support folder is shared, and only with test code",
    from: { path: "^(packages|bench|scripts)/" },
    to: { path: "^tests/", pathNot: "^tests/support/" },
  },
  {
    name: "support-is-for-tests",
    comment: "what ships must not need the test support",
    from: { path: "^(packages|scripts)/", pathNot: testCode },
    to: { path: "^tests/support/" },
  },
  {
    name: "testing-is-for-tests",
    comment: "what ships must not need the test support",
    from: { path: "^(packages|scripts)/", pathNot: testCode },
    to: { path: testSupport, pathNot: "^packages/conformance/" },
  },
  {
    name: "bench-is-a-leaf",
    comment: "measurements see everything, so nothing may come to depend on them",
    from: { pathNot: "^bench/" },
    to: { path: "^bench/" },
  },
  {
    name: "examples-use-the-sdk",
    comment: "an example shows what anybody can write with the published SDK, and nothing else",
    from: { path: "^examples/" },
    to: { path: "^(packages|tests|bench|scripts)/", pathNot: "^packages/client/" },
  },
  {
    name: "examples-are-a-leaf",
    comment: "examples are run, by people and by tests; nothing else needs them",
    from: { pathNot: "^(examples|tests)/" },
    to: { path: "^examples/" },
  },
  {
    name: "scripts-stand-alone",
    comment: "the checks must run when every package is broken, and nothing that ships may need them",
    from: { path: "^scripts/", pathNot: testFile },
    to: { path: "^(packages|tests|bench)/" },
  },
  {
    name: "scripts-are-a-leaf",
    comment: "the checks must run when every package is broken, and nothing that ships may need them",
    from: { pathNot: "^scripts/" },
    to: { path: "^scripts/" },
  },
  {
    name: "package-border",
    comment: "packages meet at the subpaths that their exports list; a relative path goes around that list",
    from: { path: "^packages/([^/]+)/" },
    to: { path: "^packages/", pathNot: "^packages/$1/", dependencyTypes: ["local"], dependencyTypesNot: ["aliased"] },
  },
  {
    name: "package-border-outside",
    comment: "packages meet at the subpaths that their exports list; a relative path goes around that list",
    from: { pathNot: "^packages/" },
    to: { path: "^packages/", dependencyTypes: ["local"], dependencyTypesNot: ["aliased"] },
  },
  {
    name: "core-rooms",
    comment: "rules are pure functions: services, stores and transport call them, never the other way round",
    from: { path: coreRoom, pathNot: testFile },
    to: { path: "^packages/[^/]+/src/(services|stores|transport)/" },
  },
  {
    name: "core-storage",
    comment: "rules know no SQL and no transaction",
    from: { path: coreRoom, pathNot: testFile },
    to: { path: "^packages/(storage|http)/" },
  },
  {
    name: "core-builtins",
    comment: "rules touch no file, socket, clock or process, so that a whole mesh can run from one seed",
    from: { path: coreRoom, pathNot: testFile },
    to: { dependencyTypes: ["core"], pathNot: pureBuiltins },
  },
  {
    name: "core-libraries",
    comment: "rules touch no file, socket, clock or process, so that a whole mesh can run from one seed",
    from: { path: coreRoom, pathNot: testFile },
    to: { path: `node_modules/${outsideWorld.slice(1, -1)}/` },
  },
  {
    name: "protocol-builtins",
    comment: "protocol runs in browsers, where there is no node:*",
    from: { path: "^packages/protocol/", pathNot: testFile },
    to: { dependencyTypes: ["core"] },
  },
  {
    name: "dev-dependency",
    comment: "a published package cannot import what only this workspace installs",
    from: { path: "^packages/", pathNot: testCode },
    to: { dependencyTypes: ["npm-dev"], dependencyTypesNot: ["type-only", "npm"] },
  },
  {
    name: "no-circular",
    comment: "two files that need each other are one file, or hide a third",
    from: {},
    to: { circular: true },
  },
];

export default {
  forbidden: [...tableRules, ...rules.map((rule) => ({ ...rule, severity: "error" }))],
  options: {
    // TypeScript 7 has no API that dependency-cruiser could parse with, and without a parser it sees no module at all.
    parser: "swc",
    tsPreCompilationDeps: true,
    combinedDependencies: true,
    doNotFollow: { path: "(^|/)node_modules/" },
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      conditionNames: ["import", "types", "default"],
      extensions: [".ts", ".js", ".mjs", ".json", ".d.ts"],
    },
  },
};

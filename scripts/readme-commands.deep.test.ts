// How the commands of a README section are found and run: the contract that the README's install, test and tour
// sections are written to. The product is a stand-in here; the real one runs in .ci/run and in pack.deep.test.ts.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

/** Answers like a daemon on a socket in its home, and ends on SIGINT unless it is made stubborn. */
const standIn = `
  import { appendFileSync, mkdirSync } from "node:fs";
  import { createServer } from "node:http";
  const folder = process.env.HOME + "/.claudemesh/daemon/home";
  mkdirSync(folder, { recursive: true });
  const server = createServer((request, response) => response.end("{}"));
  server.listen(folder + "/sock", () => appendFileSync("events", "up\\n"));
  process.on("SIGINT", () => {
    if (process.argv.includes("--stubborn")) return;
    appendFileSync("events", "down\\n");
    server.closeAllConnections();
    server.close();
  });
`;

const readme = `# Stand-in
## Install
Text, and a block that is not run:
\`\`\`
exit 9
\`\`\`
\`\`\`sh
greeting="hello there"
cd sub 2>/dev/null || mkdir sub && cd sub
\`\`\`
### A step
\`\`\`sh
# still the same shell
echo "$greeting from \${PWD##*/}" > ../said
echo "$HOME" > ../home
\`\`\`
## A five-minute tour
\`\`\`sh
npm start
echo used >> events
claudemesh --version > version
echo installed > installed && npm start
echo used again >> events
\`\`\`
## Stubborn
\`\`\`sh
npm start -- --stubborn
\`\`\`
## Broken
\`\`\`sh
false
echo never > never
\`\`\`
## Dead on arrival
\`\`\`sh
npm start -- --unknown && node --no-such-option
\`\`\`
## Endless
\`\`\`sh
sleep 1000 &
while true; do sleep 0.1; done
\`\`\`
## Nothing to run
\`\`\`js
1 + 1
\`\`\`
## Twice
## Twice more
`;

let folder: string;

function run(command: string, word: string, ...options: string[]): { status: number | null; output: string } {
  const script = join(import.meta.dirname, "readme-commands.mjs");
  const args = [script, command, word, "--readme", join(folder, "README.md"), "--cwd", folder, ...options];
  const { status, stdout, stderr } = spawnSync(process.execPath, [...args, "--bin", join(folder, "claudemesh")], {
    encoding: "utf8",
    env: { ...process.env, README_END_TENTHS: "20" },
  });
  return { status, output: `${stdout}${stderr}` };
}

const read = (name: string) => readFileSync(join(folder, name), "utf8");

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "claudemesh-readme-"));
  writeFileSync(join(folder, "README.md"), readme);
  writeFileSync(
    join(folder, "package.json"),
    JSON.stringify({ scripts: { start: `exec ${process.execPath} product.mjs` } }),
  );
  writeFileSync(join(folder, "product.mjs"), standIn);
  writeFileSync(join(folder, "claudemesh"), "#!/bin/sh\necho 1.2.3\n", { mode: 0o755 });
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("readme-commands", () => {
  it("prints the sh lines of the section with the word, sub-sections included, and no others", () => {
    const { output } = run("print", "install");
    expect(output).toMatch(/^greeting=/);
    expect(output).toMatch(/still the same shell/);
    expect(output).not.toMatch(/exit 9|npm start/);
  });

  it("runs a section in one shell with a home of its own", () => {
    expect(run("run", "Install")).toMatchObject({ status: 0 });
    expect(read("said")).toBe("hello there from sub\n");
    expect(read("home").trim()).not.toBe(process.env.HOME);
  });

  it("starts npm start in the background, uses it when its daemon answers and ends it with Ctrl-C", () => {
    const { status, output } = run("run", "tour");
    expect(output).toMatch(/^in_background 'npm start'$/m);
    expect(status).toBe(0);
    expect(read("events")).toBe("up\nused\ndown\nup\nused again\ndown\n");
    expect(read("version")).toBe("1.2.3\n");
    expect(read("installed")).toBe("installed\n");
  });

  it("fails when Ctrl-C does not end the background command, and ends it anyway", () => {
    const { status, output } = run("run", "Stubborn");
    expect(output).toMatch(/Ctrl-C did not end it/);
    expect(status).toBe(1);
  });

  it("fails at the first command that fails", () => {
    expect(run("run", "Broken").status).toBe(1);
    expect(() => read("never")).toThrow(/ENOENT/);
  });

  it("fails when the background command ends before its daemon answers", () => {
    writeFileSync(join(folder, "product.mjs"), "process.exit(4);\n");
    const { status, output } = run("run", "arrival");
    writeFileSync(join(folder, "product.mjs"), standIn);
    expect(output).toMatch(/it ended before its daemon answered/);
    expect(status).toBe(1);
  });

  it("fails when a section does not end, and ends what it started", () => {
    // What it started holds the output open, so that run returns only when that is gone too.
    const { status, output } = run("run", "Endless", "--timeout-s", "2");
    expect(output).toMatch(/the section "Endless" did not end within 2 s/);
    expect(status).toBe(1);
  });

  it.each([
    ["Nothing", /shows no sh commands/],
    ["Missing", /0 headings of the README have the word "Missing"/],
    ["Twice", /2 headings of the README have the word "Twice"/],
  ])("refuses a section it cannot run: %s", (word, reason) => {
    const { status, output } = run("run", word);
    expect(output).toMatch(reason);
    expect(status).toBe(1);
  });
});

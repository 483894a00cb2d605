// Runs the shell commands that a section of the README shows, so that what it promises is what was tried. Plain
// JavaScript: the install section runs before the pinned Node is there.
//
// The contract with the README: the commands of a section are the lines of its ```sh blocks, run in order in one bash
// with -euo pipefail and a home folder of its own. A line that ends by running `npm start` is started in the background,
// used once its daemon answers, and ended with Ctrl-C before the next such line and at the end of the section.
import { spawn } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { request } from "node:http";
import { homedir, tmpdir } from "node:os";
import { delimiter, dirname, join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const self = fileURLToPath(import.meta.url);
/** Such a line may install everything first. */
const readyTimeoutMs = 240_000;

/** The lines of a section: from the one heading that has `word` in it to the next heading of its level or above. */
function findSection(markdown, word) {
  const lines = markdown.split("\n");
  let fenced = false;
  const headings = lines.flatMap((line, index) => {
    if (line.startsWith("```")) fenced = !fenced;
    const match = fenced ? null : /^(#{1,6})\s+(.*)$/.exec(line);
    return match === null ? [] : [{ index, level: match[1].length, text: match[2] }];
  });
  const named = headings.filter(({ text }) => new RegExp(`\\b${word}\\b`, "i").test(text));
  if (named.length !== 1) throw new Error(`${named.length} headings of the README have the word "${word}"; one should`);
  const [{ index, level }] = named;
  const next = headings.find((heading) => heading.index > index && heading.level <= level);
  return lines.slice(index + 1, next?.index);
}

/** The commands of a section, line by line. */
function extractCommands(markdown, word) {
  const commands = [];
  let inside = false;
  for (const line of findSection(markdown, word)) {
    if (line.startsWith("```")) inside = !inside && line.trim() === "```sh";
    else if (inside) commands.push(line);
  }
  if (commands.every((line) => line.trim() === "")) throw new Error(`the section "${word}" shows no sh commands`);
  return commands;
}

/** The bash script of a section. It shows the README's lines as it comes to them. */
function composeScript(commands) {
  const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  const body = commands.map((line) => (/(?:^| && )npm start\b/.test(line) ? `in_background ${quote(line)}` : line));
  return `set -euo pipefail
background=
end_background() {
  [ -n "$background" ] || return 0
  local pid=$background tenths=0
  background=
  kill -INT -- "-$pid"
  while kill -0 -- "-$pid" 2>/dev/null; do
    if [ "$((tenths += 1))" -gt "$README_END_TENTHS" ]; then
      kill -KILL -- "-$pid"
      cat "$README_LOG"
      echo "Ctrl-C did not end it" >&2
      return 1
    fi
    sleep 0.1
  done
  cat "$README_LOG"
}
in_background() {
  end_background
  set -m
  bash -c "$1" >"$README_LOG" 2>&1 </dev/null &
  background=$!
  set +m
  "$README_NODE" ${quote(self)} wait "$background" || { cat "$README_LOG"; return 1; }
}
finish() {
  local status=$?
  end_background || status=1
  exit "$status"
}
trap finish EXIT
set -v
${body.join("\n")}
`;
}

/** A user's own shell: no trace of the npm script, test runner or CI that this may run under. */
function userEnvironment(home) {
  const kept = /^npm_config_(registry|cache|userconfig|globalconfig|offline|prefer_offline|cafile)$/i;
  const dropped =
    /^(npm_.*|INIT_CWD|NODE_.*|VITEST.*|TEST|DEV|PROD|SSR|MODE|BASE_URL|CLAUDEMESH_HOME|XDG_.*|CI|GITHUB_ACTIONS|GITLAB_CI|BUILDKITE|CIRCLECI|JENKINS_URL)$/i;
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => kept.test(name) || !dropped.test(name)),
  );
  const path = (env.PATH ?? "").split(delimiter).filter((each) => !/node_modules\/\.bin\/?$|node-gyp-bin/.test(each));
  return {
    npm_config_cache: join(homedir(), ".npm"),
    npm_config_userconfig: join(homedir(), ".npmrc"),
    ...env,
    HOME: home,
    TMPDIR: join(home, "t"),
    PATH: [join(home, "bin"), ...path].join(delimiter),
    README_LOG: join(home, "background.log"),
    README_NODE: process.execPath,
    README_END_TENTHS: process.env.README_END_TENTHS ?? "300",
  };
}

async function runSection(word, { readme, cwd, bin, timeoutS }) {
  const script = composeScript(extractCommands(readFileSync(readme, "utf8"), word));
  const home = mkdtempSync(join(tmpdir(), "cm-"));
  for (const folder of ["bin", "t"]) mkdirSync(join(home, folder));
  if (bin !== undefined) symlinkSync(resolve(bin), join(home, "bin", "claudemesh"));
  writeFileSync(join(home, "section.sh"), script);
  // A process group of its own, so that what the section leaves behind can be ended with it.
  const options = { cwd, env: userEnvironment(home), stdio: ["ignore", "inherit", "inherit"], detached: true };
  const bash = spawn("bash", [join(home, "section.sh")], options);
  const endGroup = () => ignoreMissing(() => process.kill(-bash.pid, "SIGKILL"));
  const limit = setTimeout(() => {
    console.error(`the section "${word}" did not end within ${timeoutS} s`);
    endGroup();
  }, timeoutS * 1_000);
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, endGroup);
  const status = await new Promise((done, fail) => {
    bash.on("error", fail);
    bash.on("exit", (code) => done(code ?? 1));
  });
  clearTimeout(limit);
  endGroup();
  endDaemons(home);
  rmSync(home, { recursive: true, force: true, maxRetries: 5 });
  return status;
}

function ignoreMissing(end) {
  try {
    end();
  } catch (error) {
    if (error.code !== "ESRCH") throw error;
  }
}

/** Daemons leave the process group; a section that failed half-way has not taken its own down. */
function endDaemons(home) {
  const pidFiles = readdirSync(home, { recursive: true }).filter((path) => /(^|\/)daemon\/[^/]+\/pid$/.test(path));
  for (const path of pidFiles) {
    const pid = Number.parseInt(readFileSync(join(home, path), "utf8"), 10);
    if (pid > 1) ignoreMissing(() => process.kill(pid, "SIGKILL"));
  }
}

/** Whether a daemon answers on the socket. */
function answers(socketPath) {
  return new Promise((done) => {
    const asked = request({ socketPath, path: "/v1/version", timeout: 2_000 }, (response) => {
      response.resume();
      done(response.statusCode === 200);
    });
    asked.on("timeout", () => asked.destroy());
    asked.on("error", () => done(false));
    asked.end();
  });
}

function isRunning(pid) {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error.code !== "ESRCH";
  }
}

/** Waits until a daemon of this home answers; fails when `pid` ends first. */
async function waitForDaemon(pid) {
  const home = process.env.CLAUDEMESH_HOME ?? join(homedir(), ".claudemesh");
  const daemons = join(home, "daemon");
  for (const deadline = Date.now() + readyTimeoutMs; Date.now() < deadline; await sleep(100)) {
    const sockets = existsSync(daemons) ? readdirSync(daemons).map((mesh) => join(daemons, mesh, "sock")) : [];
    for (const socket of sockets) {
      if (existsSync(socket) && (await answers(socket))) return 0;
    }
    if (!isRunning(pid)) {
      console.error("it ended before its daemon answered");
      return 1;
    }
  }
  console.error(`no daemon answered under ${daemons} within ${readyTimeoutMs / 1_000} s`);
  return 1;
}

async function main() {
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: {
      readme: { type: "string" },
      cwd: { type: "string" },
      bin: { type: "string" },
      "timeout-s": { type: "string", default: "600" },
    },
  });
  const [command, argument] = positionals;
  const repository = dirname(dirname(self));
  const readme = values.readme ?? join(repository, "README.md");
  if (command === "wait" && argument !== undefined) return await waitForDaemon(Number(argument));
  if (command === "print" && argument !== undefined) {
    console.log(extractCommands(readFileSync(readme, "utf8"), argument).join("\n"));
    return 0;
  }
  if (command === "run" && argument !== undefined) {
    const timeoutS = Number(values["timeout-s"]);
    return await runSection(argument, { readme, cwd: values.cwd ?? repository, bin: values.bin, timeoutS });
  }
  console.error(
    "Usage: readme-commands.mjs print|run <word of a heading>\n" +
      "       [--readme file] [--cwd folder] [--bin claudemesh] [--timeout-s seconds]",
  );
  return 2;
}

try {
  process.exitCode = await main();
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}

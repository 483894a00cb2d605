// `npm install --global claudemesh` as a user has it, under a Node of the caller's choice: the package itself comes from
// its tarball, and what it asks for in our scope from a registry that serves the tarballs of this build.
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, realpathSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";
import { bringsNode, machineWarning, type PackedInstall } from "./packed-install.ts";

export interface GlobalInstall {
  /** What npm printed. */
  readonly output: string;
  /** `lib/node_modules/claudemesh` below the prefix. */
  readonly folder: string;
  readonly command: string;
  readonly env: NodeJS.ProcessEnv;
}

const run = promisify(execFile);

/** `node` is first on the PATH that npm and the command see. `prefix` must not exist. */
export async function installGlobally(packed: PackedInstall, node: string, prefix: string): Promise<GlobalInstall> {
  mkdirSync(prefix);
  const env = { ...packed.env, PATH: `${dirname(node)}${delimiter}${packed.env.PATH}` };
  const registry = await serveScope(packed);
  try {
    const args = ["install", "--global", "--prefix", prefix, "--no-audit", "--no-fund", "--prefer-offline"];
    const scope = `--@claudemesh:registry=${registry.url}`;
    const npm = [findNpm(packed.env), ...args, scope, packed.tarballOf("claudemesh")];
    const { stdout, stderr } = await run(node, npm, { cwd: prefix, env, timeout: 200_000 });
    const folder = join(prefix, "lib", "node_modules", "claudemesh");
    return {
      output: `${stdout}${stderr.replaceAll(machineWarning, "")}`,
      folder,
      command: join(prefix, "bin", "claudemesh"),
      env,
    };
  } finally {
    registry.close();
  }
}

/** The program behind the `npm` on PATH. */
function findNpm(env: NodeJS.ProcessEnv): string {
  const found = (env.PATH ?? "").split(delimiter).map((each) => join(each, "npm"));
  const npm = found.find((each) => existsSync(each));
  if (npm === undefined) throw new Error("there is no npm on PATH");
  return realpathSync(npm);
}

async function serveScope(packed: PackedInstall): Promise<{ readonly url: string; readonly close: () => void }> {
  const manifest = packed.manifests.find(({ name }) => name === bringsNode);
  if (manifest === undefined) throw new Error(`${bringsNode} was not built`);
  const tarball = readFileSync(packed.tarballOf(bringsNode));
  const integrity = `sha512-${createHash("sha512").update(tarball).digest("base64")}`;
  const server = createServer((request, response) => {
    if (request.url === "/tarball.tgz") return void response.end(tarball);
    if (decodeURIComponent(request.url ?? "") !== `/${bringsNode}`) return void response.writeHead(404).end("{}");
    const dist = { tarball: `${url}/tarball.tgz`, integrity };
    const { name, version } = manifest;
    const versions = { [version]: { ...manifest, dist } };
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ name, "dist-tags": { latest: version }, versions }));
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, close: () => server.close() };
}

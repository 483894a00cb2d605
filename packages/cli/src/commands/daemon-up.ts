// `claudemesh daemon up`: the daemon of one mesh, in the foreground or left running in the background; as the member of
// this home, or as one that lives for this run alone.

import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { type MeshPaths, meshPaths } from "@claudemesh/client/home";
import { MeshError } from "@claudemesh/protocol/errors";
import { decodeInvite, type Invite } from "@claudemesh/protocol/wire/invite";
import { type Command, Option } from "commander";
import { type Commands, examples, type Outcome, run, withMesh } from "../command.ts";
import { exitCodeOfEnd } from "../daemon/daemon-end.ts";
import { chooseIdentity, type IdentityChoice } from "../daemon/daemon-identity.ts";
import { describeDaemon, startDaemonInBackground } from "../daemon/daemon-start.ts";
import { WrongUsage } from "../exit-codes.ts";
import { allowsPlainHttp, parseWait } from "../input/arguments.ts";
import { readSecret } from "../input/secret-input.ts";
import { jsonText } from "../output/printable.ts";
import { findCiVariable } from "../service/ci-environment.ts";
import { pathsFor, type Shell } from "../shell.ts";
import { stopSignal } from "../signals.ts";

export const commands = {
  "daemon up": defineUp,
} satisfies Commands;

type Options = {
  mesh?: string;
  json?: boolean;
  foreground?: boolean;
  persistent?: boolean;
  ephemeral?: boolean;
  ttl?: number;
  invite?: string;
  inviteFile?: string;
  name?: string;
};

const defaultTtlMs = 2 * 3_600_000;

/**
 * The daemon of one mesh, in the foreground or left running in the background; as the member of this home, or as one
 * that lives for this run alone.
 */
function defineUp(command: Command, shell: Shell): void {
  withMesh(command)
    .option("--foreground", "stay in this terminal until Ctrl-C")
    .option("--persistent", "keys that stay in this home, also on a build machine")
    .addOption(new Option("--ephemeral", "keys in memory and data that goes away at the end").conflicts("persistent"))
    .option("--ttl <time>", "how long an ephemeral daemon runs at most, up to 24h (default: 2h)", parseWait)
    .option(
      "--invite <invite>",
      "join by this invite first, where the home has no keys; - is standard input (or CLAUDEMESH_INVITE)",
    )
    .option("--invite-file <path>", "a file that holds the invite")
    .option("--name <member>", "its name in the mesh when it joins")
    .action(async (options: Options) => {
      const given = readInvite(command, shell, options);
      await run(shell, options, () => start(shell, options, given));
    });
  examples(
    command,
    "claudemesh daemon up",
    "claudemesh daemon up --mesh acme --foreground --json",
    "CLAUDEMESH_INVITE=cmi1.eyJi… claudemesh daemon up --ephemeral --ttl 30m",
  );
}

type GivenInvite = { readonly text: string; readonly invite: Invite };

/** What the command line contradicts itself in is wrong usage; the rest depends on the home. */
function readInvite(command: Command, shell: Shell, options: Options): GivenInvite | undefined {
  const sources = { given: options.invite, file: options.inviteFile };
  let text: string | undefined;
  let invite: Invite | undefined;
  try {
    text = readSecret(shell, { ...sources, what: "the invite", fileOption: "--invite-file", env: "CLAUDEMESH_INVITE" });
    invite = text === undefined ? undefined : decodeInvite(text);
  } catch (error) {
    if (!(error instanceof MeshError || error instanceof WrongUsage)) throw error;
    command.error(`error: option '--invite <invite>': ${error.message}`);
  }
  if (invite !== undefined && options.mesh !== undefined && options.mesh !== invite.mesh) {
    command.error(`error: the invite is for the mesh ${invite.mesh}, and --mesh says ${options.mesh}`);
  }
  const { ephemeral = false, persistent = false, ttl, name } = options;
  // With an invite and neither word, a build machine's daemon may turn out to be ephemeral.
  const mayBeEphemeral = invite !== undefined && !persistent;
  const wish = { ephemeral, persistent, invite, ttlMs: mayBeEphemeral ? undefined : ttl, name };
  const choice = chooseIdentity(wish, { ciVariable: undefined, hasKeys: false });
  if (choice.type === "contradiction") command.error(`error: ${choice.message}`);
  return text === undefined || invite === undefined ? undefined : { text, invite };
}

async function start(shell: Shell, options: Options, given: GivenInvite | undefined): Promise<Outcome | undefined> {
  const invite = given?.invite;
  const paths = invite === undefined ? pathsFor(shell, options) : meshPaths(shell.home, invite.mesh);
  const { ephemeral = false, persistent = false, ttl, name } = options;
  const facts = { ciVariable: findCiVariable(shell.env), hasKeys: existsSync(paths.keypair) };
  const choice = chooseIdentity({ ephemeral, persistent, invite, ttlMs: ttl, name }, facts);
  if (choice.type === "contradiction") throw new MeshError("invalid_request", choice.message);
  if (choice.type === "ephemeral") return startEphemeral(shell, options, paths, { ...choice, text: given?.text });
  if (choice.type === "joins") {
    const { joinMembership } = await import("../mesh/membership.ts");
    await joinMembership(shell.home, choice.invite, name, { plainHttp: allowsPlainHttp(shell, {}) });
  }
  return options.foreground === true ? serve(shell, options, paths) : startDaemonInBackground(shell, paths);
}

async function startEphemeral(
  shell: Shell,
  options: Options,
  paths: MeshPaths,
  choice: Extract<IdentityChoice, { type: "ephemeral" }> & { readonly text: string | undefined },
): Promise<Outcome | undefined> {
  const ttlMs = options.ttl ?? defaultTtlMs;
  const { defaultMemberName, trustInvite } = await import("../mesh/membership.ts");
  await trustInvite(shell.home, choice.invite, allowsPlainHttp(shell, {}));
  // Several of them may run at once, and a name that two have leads nowhere.
  const name =
    options.name ?? choice.invite.name ?? `${defaultMemberName().slice(0, 55)}-${randomBytes(4).toString("hex")}`;
  if (choice.because !== undefined) {
    shell.err(`${choice.because} is set, so this daemon is ephemeral; --persistent keeps its keys in ${paths.dir}.`);
  }
  if (options.foreground === true) return serve(shell, options, paths, { invite: choice.invite, name, ttlMs });
  const args = ["--ephemeral", "--ttl", `${ttlMs}ms`, "--name", name];
  // Not among the arguments of a process that stays: every user of the host can read those.
  return startDaemonInBackground(shell, paths, { args, env: { CLAUDEMESH_INVITE: choice.text } });
}

async function serve(
  shell: Shell,
  options: Options,
  { mesh }: MeshPaths,
  ephemeral?: { readonly invite: Invite; readonly name: string; readonly ttlMs: number },
): Promise<undefined> {
  const { startDaemon } = await import("@claudemesh/daemon/start");
  const { home, env, version } = shell;
  const daemon = await startDaemon({ home, mesh, env, version, ...(ephemeral === undefined ? {} : { ephemeral }) });
  const asked = stopSignal();
  const member =
    ephemeral === undefined ? {} : { ephemeral: true, name: ephemeral.name, expires_at: Date.now() + ephemeral.ttlMs };
  const ready = { event: "ready", mesh, socket: daemon.socket, http_port: daemon.httpPort ?? null, pid: process.pid };
  if (options.json === true) shell.out(jsonText({ ...ready, ...member }));
  else shell.out(describeDaemon(mesh, daemon.socket, daemon.httpPort));
  await Promise.race([asked, daemon.stopped]);
  await daemon.stop();
  const end = await daemon.stopped;
  if (end.exitCode !== 0) shell.err(`claudemesh: the daemon stopped: ${end.message}`);
  process.exitCode = exitCodeOfEnd(end, env);
  return undefined;
}

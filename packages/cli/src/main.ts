// Finds the command that was asked for, loads its file and no other, and runs it. What commands do is in commands/.
import { Command, CommanderError } from "commander";
import type { CommandModule } from "./command.ts";
import { exitCodes } from "./exit-codes.ts";
import { createShell, type Shell } from "./shell.ts";

type Entry = { readonly path: string; readonly summary: string; readonly load: () => Promise<CommandModule> };

const groups: Readonly<Record<string, string>> = {
  daemon: "the daemon of this host and its outbox",
  "daemon outbox": "what this host has sent, row by row",
  broker: "run a broker",
  mesh: "create, join and look at meshes",
  topic: "topics of a mesh",
};

/** In the order that help shows them. */
const entries: readonly Entry[] = [
  {
    path: "up",
    summary: "broker, one mesh and a daemon on this machine, nothing to configure",
    load: () => import("./commands/up.ts"),
  },
  { path: "send", summary: "send a message through the daemon", load: () => import("./commands/send.ts") },
  { path: "inbox", summary: "show what has arrived", load: () => import("./commands/inbox.ts") },
  { path: "daemon up", summary: "start the daemon", load: () => import("./commands/daemon-up.ts") },
  { path: "daemon down", summary: "stop the daemon", load: () => import("./commands/daemon-down.ts") },
  {
    path: "daemon status",
    summary: "is it running, connected, draining?",
    load: () => import("./commands/daemon-status.ts"),
  },
  {
    path: "daemon version",
    summary: "versions of command and daemon",
    load: () => import("./commands/daemon-version.ts"),
  },
  { path: "daemon outbox list", summary: "list outbox rows", load: () => import("./commands/outbox-list.ts") },
  {
    path: "daemon outbox inspect",
    summary: "one row and its chain",
    load: () => import("./commands/outbox-inspect.ts"),
  },
  { path: "broker serve", summary: "run a broker in the foreground", load: () => import("./commands/broker-serve.ts") },
  {
    path: "mesh create",
    summary: "create a mesh; this home becomes its owner",
    load: () => import("./commands/mesh-create.ts"),
  },
  {
    path: "mesh invite",
    summary: "make an invite for one new member",
    load: () => import("./commands/mesh-invite.ts"),
  },
  { path: "mesh join", summary: "join a mesh by an invite", load: () => import("./commands/mesh-join.ts") },
  { path: "mesh list", summary: "meshes of this home", load: () => import("./commands/mesh-list.ts") },
  { path: "mesh members", summary: "members of a mesh", load: () => import("./commands/mesh-members.ts") },
  { path: "mesh token", summary: "make a bearer token for HTTP calls", load: () => import("./commands/mesh-token.ts") },
  { path: "mesh token list", summary: "list your tokens", load: () => import("./commands/mesh-token-list.ts") },
  { path: "mesh token revoke", summary: "revoke a token", load: () => import("./commands/mesh-token-revoke.ts") },
  { path: "topic create", summary: "create a topic", load: () => import("./commands/topic-create.ts") },
  { path: "topic list", summary: "topics and your subscriptions", load: () => import("./commands/topic-list.ts") },
  { path: "topic subscribe", summary: "receive a topic", load: () => import("./commands/topic-subscribe.ts") },
  { path: "topic unsubscribe", summary: "stop receiving it", load: () => import("./commands/topic-unsubscribe.ts") },
];

export async function main(argv: readonly string[]): Promise<void> {
  process.umask(0o077);
  const shell = createShell(process);
  const wanted = findWanted(argv);
  const program = await buildProgram(shell, wanted);
  try {
    await program.parseAsync([...argv], { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    process.exitCode = error.exitCode === 0 ? exitCodes.done : exitCodes.usage;
  }
}

/** The longest command path that the first words name; options before a command are not a thing here. */
function findWanted(argv: readonly string[]): Entry | undefined {
  const words = (argv[0] === "help" ? argv.slice(1) : argv).slice(0, 3);
  for (let count = words.length; count > 0; count--) {
    const path = words.slice(0, count).join(" ");
    const entry = entries.find((candidate) => candidate.path === path);
    if (entry !== undefined) return entry;
  }
  return undefined;
}

async function buildProgram(shell: Shell, wanted: Entry | undefined): Promise<Command> {
  const program = new Command("claudemesh")
    .description("The coordination layer for coding agents and the machines they run on.")
    .version(shell.version)
    .exitOverride()
    .showHelpAfterError("Run it with --help to see what it takes.");
  const nodes = new Map<string, Command>([["", program]]);
  for (const [path, summary] of Object.entries(groups)) addNode(nodes, path, summary);
  for (const entry of entries) {
    const command = addNode(nodes, entry.path, entry.summary);
    if (entry === wanted) (await entry.load()).define(command, shell);
  }
  return program;
}

function addNode(nodes: Map<string, Command>, path: string, summary: string): Command {
  const cut = path.lastIndexOf(" ");
  const parent = nodes.get(cut < 0 ? "" : path.slice(0, cut));
  if (parent === undefined) throw new Error(`${path} has no parent command`);
  const command = parent
    .command(path.slice(cut + 1))
    .description(summary)
    .summary(summary);
  command.exitOverride().showHelpAfterError("Run it with --help to see what it takes.");
  nodes.set(path, command);
  return command;
}

// Every command there is, in the order that help shows them, and the file that holds each. What a command takes and
// does is in its own file, which is loaded only when somebody asks for it.
import type { CommandModule } from "./command.ts";

export type CommandEntry = {
  /** The words that name it, such as `daemon outbox list`. */
  readonly path: string;
  readonly summary: string;
  readonly load: () => Promise<CommandModule>;
};

/** Words that only stand before other commands. */
export const commandGroups: Readonly<Record<string, string>> = {
  daemon: "the daemon of this host and its outbox",
  "daemon outbox": "what this host has sent, row by row",
  broker: "run a broker and look after its store",
  mesh: "create, join and look at meshes",
  topic: "topics of a mesh",
  queue: "queues of a mesh",
  space: "shared state of a mesh: entities, transactions, branches",
};

const entry = (path: string, summary: string, load: CommandEntry["load"]): CommandEntry => ({ path, summary, load });

export const commandEntries: readonly CommandEntry[] = [
  entry("up", "broker, one mesh and a daemon on this machine, nothing to configure", () => import("./commands/up.ts")),
  entry("send", "send a message through the daemon", () => import("./commands/send.ts")),
  entry("inbox", "show what has arrived", () => import("./commands/inbox.ts")),
  entry("events", "show what happens, as it happens", () => import("./commands/events.ts")),
  entry("peers", "members that are connected now", () => import("./commands/peers.ts")),
  entry("status", "where is a message?", () => import("./commands/status.ts")),
  entry("audit", "do the records of outbox, broker and inbox balance?", () => import("./commands/audit.ts")),
  entry("doctor", "what is wrong here, and what to do about it", () => import("./commands/doctor.ts")),
  entry("daemon up", "start the daemon", () => import("./commands/daemon-up.ts")),
  entry("daemon down", "stop the daemon", () => import("./commands/daemon-down.ts")),
  entry("daemon restart", "stop the daemon and start it again", () => import("./commands/daemon-restart.ts")),
  entry("daemon status", "is it running, connected, draining?", () => import("./commands/daemon-status.ts")),
  entry("daemon version", "versions of command and daemon", () => import("./commands/daemon-version.ts")),
  entry("daemon logs", "show what the daemon has logged", () => import("./commands/daemon-logs.ts")),
  entry(
    "daemon rotate-token",
    "a new local token; the old one is good for a minute",
    () => import("./commands/daemon-rotate-token.ts"),
  ),
  entry(
    "daemon accept-host",
    "this is the right host for the keys of this home",
    () => import("./commands/daemon-accept-host.ts"),
  ),
  entry("daemon remint", "new keys for this home: a new member", () => import("./commands/daemon-remint.ts")),
  entry("daemon backup", "copy outbox and inbox while it runs", () => import("./commands/daemon-backup.ts")),
  entry("daemon recover", "save what a damaged outbox still holds", () => import("./commands/daemon-recover.ts")),
  entry("daemon outbox list", "list outbox rows", () => import("./commands/outbox-list.ts")),
  entry("daemon outbox inspect", "one row and its chain", () => import("./commands/outbox-inspect.ts")),
  entry(
    "daemon outbox requeue",
    "retire a stuck row and queue its message under a new id",
    () => import("./commands/outbox-requeue.ts"),
  ),
  entry("daemon outbox prune", "turn old done rows into tombstones", () => import("./commands/outbox-prune.ts")),
  entry(
    "daemon install-service",
    "let systemd or launchd keep the daemon running",
    () => import("./commands/daemon-install-service.ts"),
  ),
  entry(
    "daemon uninstall-service",
    "undo install-service; the daemon's files stay",
    () => import("./commands/daemon-uninstall-service.ts"),
  ),
  entry("broker serve", "run a broker in the foreground", () => import("./commands/broker-serve.ts")),
  entry("broker check", "do the rows of a store fit together?", () => import("./commands/broker-check.ts")),
  entry("broker sweep", "remove what is older than it has to be, now", () => import("./commands/broker-sweep.ts")),
  entry("broker stats", "what a store holds, mesh by mesh", () => import("./commands/broker-stats.ts")),
  entry("broker migrate", "bring a store up to this version", () => import("./commands/broker-migrate.ts")),
  entry("broker backup", "copy a SQLite store while it is used", () => import("./commands/broker-backup.ts")),
  entry("mesh create", "create a mesh; this home becomes its owner", () => import("./commands/mesh-create.ts")),
  entry("mesh invite", "make an invite for one new member", () => import("./commands/mesh-invite.ts")),
  entry("mesh join", "join a mesh by an invite", () => import("./commands/mesh-join.ts")),
  entry("mesh list", "meshes of this home", () => import("./commands/mesh-list.ts")),
  entry("mesh members", "members of a mesh", () => import("./commands/mesh-members.ts")),
  entry("mesh token", "make a bearer token for HTTP calls", () => import("./commands/mesh-token.ts")),
  entry("mesh token list", "list your tokens", () => import("./commands/mesh-token-list.ts")),
  entry("mesh token revoke", "revoke a token", () => import("./commands/mesh-token-revoke.ts")),
  entry("mesh revoke", "end a membership at once, for good", () => import("./commands/mesh-revoke.ts")),
  entry("topic create", "create a topic", () => import("./commands/topic-create.ts")),
  entry("topic list", "topics and your subscriptions", () => import("./commands/topic-list.ts")),
  entry("topic subscribe", "receive a topic", () => import("./commands/topic-subscribe.ts")),
  entry("topic unsubscribe", "stop receiving it", () => import("./commands/topic-unsubscribe.ts")),
  entry("queue create", "create a queue for competing consumers", () => import("./commands/queue-create.ts")),
  entry("queue lease", "take messages from a queue for a while", () => import("./commands/queue-lease.ts")),
  entry("queue ack", "leased messages are done", () => import("./commands/queue-ack.ts")),
  entry("queue nack", "leased messages are given back", () => import("./commands/queue-nack.ts")),
  entry("queue parked", "messages that were delivered too often", () => import("./commands/queue-parked.ts")),
  entry("queue revive", "parked messages wait again", () => import("./commands/queue-revive.ts")),
  entry("space create", "create a space", () => import("./commands/space-create.ts")),
  entry("space ls", "spaces of a mesh", () => import("./commands/space-ls.ts")),
  entry("space policy", "does it take unsigned commits?", () => import("./commands/space-policy.ts")),
  entry("space get", "one entity, now or as of a seq", () => import("./commands/space-get.ts")),
  entry("space set", "set an entity's value", () => import("./commands/space-set.ts")),
  entry("space patch", "change parts of an entity", () => import("./commands/space-patch.ts")),
  entry("space delete", "delete an entity", () => import("./commands/space-delete.ts")),
  entry("space list", "entities by prefix", () => import("./commands/space-list.ts")),
  entry("space log", "what was committed, by whom and when", () => import("./commands/space-log.ts")),
  entry("space at", "what a space held after a seq", () => import("./commands/space-at.ts")),
  entry("space watch", "what changes, as it changes", () => import("./commands/space-watch.ts")),
  entry("space branch", "list, make and delete branches", () => import("./commands/space-branch.ts")),
  entry("space merge", "bring one branch's changes into another", () => import("./commands/space-merge.ts")),
  entry("space diff", "what a branch has changed", () => import("./commands/space-diff.ts")),
  entry("mcp", "the mesh as tools for a coding agent (MCP on stdio)", () => import("./commands/mcp.ts")),
  entry("completion", "completion for bash, zsh or fish", () => import("./commands/completion.ts")),
];

// Every command there is, in the order that help shows them within their groups, and the file that holds each. What a
// command takes and does is in its file, which holds the commands of one noun and is loaded only for one of them.
import type { Define } from "./command.ts";

export type CommandEntry = {
  /** The words that name it, such as `daemon outbox list`. */
  readonly path: string;
  readonly summary: string;
  readonly load: () => Promise<Define>;
};

/** Words that only stand before other commands. */
export const commandGroups: Readonly<Record<string, string>> = {
  daemon: "the daemon of this host and its outbox",
  "daemon outbox": "what this host has sent, row by row",
  broker: "run a broker and look after its store",
  mesh: "create, join and look at meshes",
  peer: "keys behind the names that you write to",
  topic: "topics of a mesh",
  queue: "queues of a mesh",
  webhook: "tell a web server of topic messages",
  registrar: "register an artifact once, under an owner's approval",
  space: "shared state of a mesh: entities, transactions, branches",
};

/** The headings under which help shows the first words, in this order. */
export const helpGroups: readonly { readonly heading: string; readonly words: readonly string[] }[] = [
  { heading: "Start here:", words: ["up"] },
  { heading: "Messages:", words: ["send", "inbox", "events", "status", "peers", "peer", "topic", "queue", "webhook"] },
  { heading: "Shared state:", words: ["space", "once", "registrar"] },
  { heading: "This host:", words: ["daemon", "doctor", "audit", "mcp", "completion"] },
  { heading: "Running a mesh:", words: ["mesh", "broker"] },
];

/** Only for words under which the file has a command. */
const entry = <Path extends string>(
  path: Path,
  summary: string,
  load: () => Promise<{ readonly commands: Readonly<Record<NoInfer<Path>, Define>> }>,
): CommandEntry => ({ path, summary, load: async () => (await load()).commands[path] });

const broker = () => import("./commands/broker.ts");
const completion = () => import("./commands/completion.ts");
const daemonFiles = () => import("./commands/daemon-files.ts");
const daemonUp = () => import("./commands/daemon-up.ts");
const daemon = () => import("./commands/daemon.ts");
const doctor = () => import("./commands/doctor.ts");
const inbox = () => import("./commands/inbox.ts");
const mcp = () => import("./commands/mcp.ts");
const meshHome = () => import("./commands/mesh-home.ts");
const meshInvites = () => import("./commands/mesh-invites.ts");
const mesh = () => import("./commands/mesh.ts");
const once = () => import("./commands/once.ts");
const outbox = () => import("./commands/outbox.ts");
const peer = () => import("./commands/peer.ts");
const queue = () => import("./commands/queue.ts");
const registrarProve = () => import("./commands/registrar-prove.ts");
const registrar = () => import("./commands/registrar.ts");
const send = () => import("./commands/send.ts");
const services = () => import("./commands/services.ts");
const spaceBranches = () => import("./commands/space-branches.ts");
const spaceHistory = () => import("./commands/space-history.ts");
const space = () => import("./commands/space.ts");
const status = () => import("./commands/status.ts");
const topic = () => import("./commands/topic.ts");
const up = () => import("./commands/up.ts");
const webhook = () => import("./commands/webhook.ts");

export const commandEntries: readonly CommandEntry[] = [
  entry("up", "broker, one mesh and a daemon on this machine, nothing to configure", up),
  entry("up install-service", "let systemd or launchd keep `up` running", services),
  entry("up uninstall-service", "undo install-service; everything else stays", services),
  entry("send", "send a message through the daemon", send),
  entry("inbox", "show what has arrived", inbox),
  entry("events", "show what happens, as it happens", inbox),
  entry("peers", "members that are connected now", peer),
  entry("peer trust", "send to the key that a name has now", peer),
  entry("peer verify", "compare a code with a member, and mark the key", peer),
  entry("status", "where is a message?", status),
  entry("audit", "do the records of outbox, broker and inbox balance?", status),
  entry("doctor", "what is wrong here, and what to do about it", doctor),
  entry("daemon up", "start the daemon", daemonUp),
  entry("daemon down", "stop the daemon", daemon),
  entry("daemon restart", "stop the daemon and start it again", daemon),
  entry("daemon status", "is it running, connected, draining?", daemon),
  entry("daemon reconnect", "try to reach a broker now", daemon),
  entry("daemon version", "versions of command and daemon", daemon),
  entry("daemon logs", "show what the daemon has logged", daemonFiles),
  entry("daemon reload", "let the daemon read its settings again", daemon),
  entry("daemon rotate-token", "a new local token; the old one is good for a minute", daemon),
  entry("daemon accept-host", "this is the right host for the keys of this home", daemonFiles),
  entry("daemon remint", "new keys for this home: a new member", daemonFiles),
  entry("daemon backup", "copy outbox and inbox while it runs", daemonFiles),
  entry("daemon recover", "save what a damaged outbox still holds", daemonFiles),
  entry("daemon outbox list", "list outbox rows", outbox),
  entry("daemon outbox inspect", "one row and its chain", outbox),
  entry("daemon outbox requeue", "retire a stuck row and queue its message under a new id", outbox),
  entry("daemon outbox dismiss", "let a dead row go: no more alarms", outbox),
  entry("daemon outbox prune", "turn old done rows into tombstones", outbox),
  entry("daemon install-service", "let systemd or launchd keep the daemon running", services),
  entry("daemon uninstall-service", "undo install-service; the daemon's files stay", services),
  entry("broker serve", "run a broker in the foreground", broker),
  entry("broker check", "do the rows of a store fit together?", broker),
  entry("broker sweep", "remove what is older than it has to be, now", broker),
  entry("broker stats", "what a store holds, mesh by mesh", broker),
  entry("broker migrate", "bring a store up to this version", broker),
  entry("broker backup", "copy a SQLite store while it is used", broker),
  entry("mesh trust-broker", "trust another key of the broker, on purpose", meshHome),
  entry("broker install-service", "let systemd or launchd keep the broker running", services),
  entry("broker uninstall-service", "undo install-service; the store stays", services),
  entry("mesh create", "create a mesh; this home becomes its owner", mesh),
  entry("mesh settings", "what is set for the whole mesh", mesh),
  entry("mesh set", "set something for the whole mesh", mesh),
  entry("mesh invite", "make an invite for one new member", meshInvites),
  entry("mesh invite list", "invites and what became of them", meshInvites),
  entry("mesh invite revoke", "withdraw an invite that is not used", meshInvites),
  entry("mesh join", "join a mesh by an invite", meshInvites),
  entry("mesh list", "meshes of this home", meshHome),
  entry("mesh use", "the mesh that is meant where none is named", meshHome),
  entry("mesh members", "members of a mesh", mesh),
  entry("mesh token", "make a bearer token for HTTP calls", mesh),
  entry("mesh token list", "list your tokens", mesh),
  entry("mesh token revoke", "revoke a token", mesh),
  entry("mesh role", "make a member an owner, or an owner a member", mesh),
  entry("mesh revoke", "end a membership at once, for good", mesh),
  entry("topic create", "create a topic", topic),
  entry("topic list", "topics, who hears them, and how much was said", topic),
  entry("topic subscribe", "receive a topic", topic),
  entry("topic unsubscribe", "stop receiving it", topic),
  entry("queue create", "create a queue for competing consumers", queue),
  entry("queue list", "queues, and what waits in each", queue),
  entry("queue lease", "take messages from a queue for a while", queue),
  entry("queue ack", "leased messages are done", queue),
  entry("queue nack", "leased messages are given back", queue),
  entry("queue parked", "messages that were delivered too often", queue),
  entry("queue revive", "parked messages wait again", queue),
  entry("webhook create", "send topic messages to a URL, signed", webhook),
  entry("webhook list", "webhooks, and what waits for them", webhook),
  entry("webhook deliveries", "what became of each message, parked ones among them", webhook),
  entry("webhook replay", "deliver parked or earlier messages again", webhook),
  entry("webhook delete", "stop telling a URL, at once", webhook),
  entry("registrar approve", "approve one registration or compensation; shows its nonce once", registrar),
  entry("registrar approvals", "approvals and what became of them", registrar),
  entry("registrar revoke", "withdraw an approval that is not spent", registrar),
  entry("registrar register", "register an artifact, once", registrar),
  entry("registrar status", "what became of a request?", registrar),
  entry("registrar attempts", "who tried a request, and how often", registrar),
  entry("registrar compensate", "record that a failed registration was made good", registrar),
  entry("registrar list", "registrations in their order", registrar),
  entry("registrar audit", "what the registrar has refused", registrar),
  entry("registrar prove", "does the store's schema prove single use?", registrarProve),
  entry("once", "run a command once for the whole mesh", once),
  entry("once list", "keys, and which of them are uncertain", once),
  entry("space create", "create a space", space),
  entry("space ls", "spaces of a mesh", space),
  entry("space policy", "does it take unsigned commits?", space),
  entry("space get", "one entity, now or as of a seq", space),
  entry("space set", "set an entity's value", space),
  entry("space patch", "change parts of an entity", space),
  entry("space delete", "delete an entity", space),
  entry("space list", "entities by prefix", space),
  entry("space log", "what was committed, by whom and when", spaceHistory),
  entry("space at", "what a space held after a seq", spaceHistory),
  entry("space watch", "what changes, as it changes", spaceHistory),
  entry("space branch", "list, make and delete branches", spaceBranches),
  entry("space merge", "bring one branch's changes into another", spaceBranches),
  entry("space diff", "what a branch has changed", spaceBranches),
  entry("mcp", "the mesh as tools for a coding agent (MCP on stdio)", mcp),
  entry("completion", "completion for bash, zsh or fish", completion),
];

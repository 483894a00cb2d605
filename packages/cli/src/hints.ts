// What a command says to type next. In a home of several meshes such a hint names the mesh, or it would be about another
// one, or about none, when it is typed. The same for hints of the daemon and the broker, which know of one mesh only.
import { listMeshes } from "@claudemesh/client/home";
import { meshInQuestion, type Shell } from "./shell.ts";

/** Commands that take `--mesh`, by their first word; the empty text is that word alone. */
const commandsWithMesh: Readonly<Record<string, readonly string[]>> = {
  send: [""],
  inbox: [""],
  events: [""],
  peers: [""],
  peer: ["trust", "verify"],
  status: [""],
  audit: [""],
  doctor: [""],
  daemon: [
    "up",
    "down",
    "restart",
    "status",
    "reconnect",
    "version",
    "logs",
    "reload",
    "rotate-token",
    "accept-host",
    "remint",
    "backup",
    "recover",
    "outbox list",
    "outbox inspect",
    "outbox requeue",
    "outbox dismiss",
    "outbox prune",
    "install-service",
    "uninstall-service",
  ],
  mesh: [
    "trust-broker",
    "settings",
    "set",
    "invite",
    "invite list",
    "invite revoke",
    "members",
    "token",
    "token list",
    "token revoke",
    "role",
    "revoke",
  ],
  topic: ["create", "list", "subscribe", "unsubscribe"],
  queue: ["create", "list", "lease", "ack", "nack", "parked", "revive"],
  webhook: ["create", "list", "deliveries", "replay", "delete"],
  registrar: ["approve", "approvals", "revoke", "register", "status", "attempts", "compensate", "list", "audit"],
  once: ["", "list"],
  space: [
    "create",
    "ls",
    "policy",
    "get",
    "set",
    "patch",
    "delete",
    "list",
    "log",
    "at",
    "watch",
    "branch",
    "merge",
    "diff",
  ],
  mcp: [""],
};

const paths: ReadonlySet<string> = new Set(
  Object.entries(commandsWithMesh).flatMap(([first, others]) => others.map((rest) => `${first} ${rest}`.trimEnd())),
);

export function takesMesh(path: string): boolean {
  return paths.has(path);
}

/** The text with `--mesh <name>` in every command that takes it and has none, where the home holds more than one mesh. */
export function hint(shell: Shell, text: string): string {
  const paths = meshInQuestion(shell);
  return paths === undefined ? text : hintFor(paths, text);
}

export function hintFor({ home, mesh }: { readonly home: string; readonly mesh: string }, text: string): string {
  return listMeshes(home).length < 2 ? text : nameMesh(text, mesh);
}

export function nameMesh(text: string, mesh: string): string {
  return text.replace(/\bclaudemesh((?: [a-z][a-z-]*)+)/g, (whole: string, words: string, at: number) => {
    const path = longestPath(words.trim().split(" "));
    if (path === undefined || namesMesh(text.slice(at + whole.length))) return whole;
    const end = "claudemesh ".length + path.length;
    return `${whole.slice(0, end)} --mesh ${mesh}${whole.slice(end)}`;
  });
}

function longestPath(words: readonly string[]): string | undefined {
  for (let count = Math.min(words.length, 3); count > 0; count--) {
    const path = words.slice(0, count).join(" ");
    if (takesMesh(path)) return path;
  }
  return undefined;
}

/** Within the same command, which ends where prose or another command begins. */
function namesMesh(rest: string): boolean {
  const [command = ""] = rest.split(/[`;\n]|\bclaudemesh /, 1);
  return /(^| )--mesh[ =]/.test(command);
}

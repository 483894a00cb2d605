// The small files that tell others about a running daemon. They are news, not locks: whether a daemon runs is decided
// by the kernel's lock, and found out by asking its socket.
import { existsSync, readFileSync, rmSync } from "node:fs";
import process from "node:process";
import type { MeshPaths } from "@claudemesh/client/home";
import { replacePrivateFile } from "@claudemesh/client/internal/private-files";
import { StartRefused } from "../start-refused.ts";

export type SchemaNumbers = { readonly outbox: number; readonly inbox: number };

/** The databases know their own schemas; this is about a folder that a newer build has written down as its own. */
export function refuseNewerSchema(path: string, known: SchemaNumbers): void {
  const written = readSchema(path);
  if (written.outbox <= known.outbox && written.inbox <= known.inbox) return;
  throw new StartRefused(
    "schema_newer",
    `${path} is of a newer claudemesh than this one; upgrade it here. If you have put older files back, remove that file.`,
  );
}

/** What cannot be understood says nothing. */
function readSchema(path: string): SchemaNumbers {
  if (!existsSync(path)) return { outbox: 0, inbox: 0 };
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(path, "utf8"));
  } catch {
    return { outbox: 0, inbox: 0 };
  }
  if (typeof value === "number") return { outbox: value, inbox: value };
  const { outbox, inbox } = (value ?? {}) as { outbox?: unknown; inbox?: unknown };
  return { outbox: typeof outbox === "number" ? outbox : 0, inbox: typeof inbox === "number" ? inbox : 0 };
}

export function announceFiles(paths: MeshPaths, httpPort: number | undefined, schema: SchemaNumbers): void {
  replacePrivateFile(paths.schemaVersion, `${JSON.stringify(schema)}\n`);
  replacePrivateFile(paths.pid, `${process.pid}\n`);
  if (httpPort === undefined) rmSync(paths.httpPort, { force: true });
  else replacePrivateFile(paths.httpPort, `${httpPort}\n`);
}

export function withdrawFiles(paths: MeshPaths): void {
  rmSync(paths.pid, { force: true });
  rmSync(paths.httpPort, { force: true });
}

// The small files that tell others about a running daemon. They are news, not locks: whether a daemon runs is decided
// by the kernel's lock, and found out by asking its socket.
import { rmSync } from "node:fs";
import process from "node:process";
import type { MeshPaths } from "@claudemesh/client/home";
import { replacePrivateFile } from "@claudemesh/client/private-files";

export type SchemaNumbers = { readonly outbox: number; readonly inbox: number };

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

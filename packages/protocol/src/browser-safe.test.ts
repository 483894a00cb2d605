// The protocol runs in Node and in browsers alike. This proves it of every source file: what is imported, and
// which names of Node are used. A name reached through globalThis is allowed, because then its absence is handled.
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { parseSync } from "@swc/core";
import { describe, expect, it } from "vitest";

const sourceFolder = fileURLToPath(new URL(".", import.meta.url));
const ALLOWED_PACKAGES = new Set(["canonicalize", "json-schema-to-ts"]);
const NODE_NAMES = new Set([
  "Buffer",
  "process",
  "require",
  "module",
  "exports",
  "global",
  "__dirname",
  "__filename",
  "setImmediate",
  "clearImmediate",
]);

interface SyntaxNode {
  type?: unknown;
  [field: string]: unknown;
}

/** Everything in one file that a browser could not run; empty for a file that is safe. */
function findUnsafe(path: string, source: string, sourcePaths: ReadonlySet<string>): string[] {
  const unsafe: string[] = [];
  visit(parseSync(source, { syntax: "typescript", target: "es2024" }) as unknown as SyntaxNode, (node) => {
    if (node.type === "Identifier" && typeof node.value === "string" && NODE_NAMES.has(node.value)) {
      unsafe.push(`uses ${node.value}`);
    }
    if (node.type === "MetaProperty" && node.kind === "import.meta") unsafe.push("uses import.meta");
    const specifier = importedSpecifier(node);
    if (specifier === undefined || ALLOWED_PACKAGES.has(specifier)) return;
    const target = join(dirname(path), specifier);
    if (!/^\.\.?\//.test(specifier) || !sourcePaths.has(target)) unsafe.push(`imports ${specifier}`);
  });
  return unsafe;
}

function importedSpecifier(node: SyntaxNode): string | undefined {
  const isStatic =
    node.type === "ImportDeclaration" ||
    node.type === "ExportAllDeclaration" ||
    node.type === "ExportNamedDeclaration" ||
    node.type === "TsImportType";
  if (isStatic) return literalText(node.source ?? node.argument);
  const isDynamic = node.type === "CallExpression" && (node.callee as SyntaxNode).type === "Import";
  if (!isDynamic) return undefined;
  const [argument] = node.arguments as { expression: SyntaxNode }[];
  return literalText(argument?.expression) ?? "what a variable says";
}

function literalText(node: unknown): string | undefined {
  const { type, value } = (node ?? {}) as SyntaxNode;
  return type === "StringLiteral" ? String(value) : undefined;
}

/** Names behind a dot and names of members are not uses of a global. */
function isMemberName(parent: SyntaxNode, field: string): boolean {
  if (field === "property") return parent.type === "MemberExpression";
  if (field === "right") return parent.type === "TsQualifiedName";
  return field === "key" && parent.type !== "Computed";
}

function visit(node: SyntaxNode, look: (node: SyntaxNode) => void): void {
  look(node);
  for (const [field, child] of Object.entries(node)) {
    for (const item of Array.isArray(child) ? child : [child]) {
      if (item === null || typeof item !== "object") continue;
      const isName = (item as SyntaxNode).type === "Identifier";
      if (!(isName && isMemberName(node, field))) visit(item as SyntaxNode, look);
    }
  }
}

function listSources(): Map<string, string> {
  const paths = readdirSync(sourceFolder, { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".ts") && !path.endsWith(".test.ts"))
    .map((path) => path.split(sep).join("/"));
  return new Map(paths.map((path) => [path, readFileSync(join(sourceFolder, path), "utf8")]));
}

const sources = listSources();
const sourcePaths = new Set(sources.keys());

describe("the protocol in a browser", () => {
  it("is examined file by file, and there are files", () => {
    expect(sourcePaths).toContain("json/strict-json.ts");
    expect(sourcePaths).toContain("encoding/base64.ts");
    expect(sourcePaths).not.toContain(relative(sourceFolder, fileURLToPath(import.meta.url)));
  });

  it.each([...sources.keys()])("%s needs nothing that only Node has", (path) => {
    expect(findUnsafe(path, sources.get(path) ?? "", sourcePaths)).toEqual([]);
  });
});

describe("the examination", () => {
  const find = (source: string) => findUnsafe("json/planted.ts", source, sourcePaths);

  it.each([
    ['import { readFileSync } from "node:fs";', "imports node:fs"],
    ['import fs from "fs";', "imports fs"],
    ['import type { Buffer as Bytes } from "node:buffer";', "imports node:buffer"],
    ['import "node:process";', "imports node:process"],
    ['export * from "node:path";', "imports node:path"],
    ['export { join } from "node:path";', "imports node:path"],
    ['type Hash = import("node:crypto").Hash;', "imports node:crypto"],
    ['const fs = await import("node:fs");', "imports node:fs"],
    ["const some = await import(name);", "imports what a variable says"],
    ['import Ajv from "ajv";', "imports ajv"],
    ['import { open } from "@claudemesh/storage/sqlite";', "imports @claudemesh/storage/sqlite"],
    ['import { open } from "../../../storage/src/open.ts";', "imports ../../../storage/src/open.ts"],
    ['import { it } from "./strict-json.test.ts";', "imports ./strict-json.test.ts"],
    ["const size = Buffer.byteLength(text);", "uses Buffer"],
    ["function f(bytes: Buffer) { return bytes; }", "uses Buffer"],
    ["const fields = { Buffer };", "uses Buffer"],
    ["const env = process.env.HOME;", "uses process"],
    ["const isNode = typeof process;", "uses process"],
    ["const sources = { now: () => process.hrtime() };", "uses process"],
    ["const value = record[process];", "uses process"],
    ['const fs = require("fs");', "uses require"],
    ["const here = __dirname;", "uses __dirname"],
    ["const here = import.meta.url;", "uses import.meta"],
    ["setImmediate(run);", "uses setImmediate"],
  ])("finds %s", (source, unsafe) => {
    expect(find(source)).toContain(unsafe);
  });

  it.each([
    ['import canonicalize from "canonicalize";'],
    ['import type { FromSchema } from "json-schema-to-ts";'],
    ['import { parseStrictJson } from "./strict-json.ts";'],
    ['import { encodeHex } from "../encoding/hex.ts";'],
    ["const buffer = (globalThis as { Buffer?: unknown }).Buffer;"],
    ["const handlers = { process: 1, require: 2 };"],
    ["class Drain { process(): void {} }"],
    ['const word = "process";'],
    ["// Buffer, process and node:fs in a comment"],
  ])("lets %s pass", (source) => {
    expect(find(source)).toEqual([]);
  });
});

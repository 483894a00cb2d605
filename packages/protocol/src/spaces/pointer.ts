// JSON pointers (RFC 6901): between the text in a patch and the list of keys that reads and footprints use.
import { MeshError } from "../errors/errors.ts";
import { type ReadPath, spaceLimits } from "./entity.ts";

/**
 * Undefined where the text is no pointer: it must be empty, or have `/` before each key, with `~` only in `~0` and
 * `~1`.
 */
export function parsePointer(pointer: string): string[] | undefined {
  if (pointer === "") return [];
  if (!pointer.startsWith("/") || /~(?![01])/.test(pointer)) return undefined;
  // `~1` is replaced first: `~01` is the key `~1`, not `/`.
  return pointer
    .slice(1)
    .split("/")
    .map((segment) => segment.replaceAll("~1", "/").replaceAll("~0", "~"));
}

export function formatPointer(path: ReadPath): string {
  return path.map((key) => `/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}

/** Reads a pointer from a request, within limits; otherwise throws a refusal that names the field. */
export function readPointer(pointer: string, field: string): string[] {
  const path = parsePointer(pointer);
  if (path === undefined || !pointer.isWellFormed()) {
    throw new MeshError("invalid_request", "A path is a JSON pointer (RFC 6901), such as /value/owner.", { field });
  }
  if (path.length > spaceLimits.pathSegments || pointer.length > spaceLimits.pathCharacters) {
    throw new MeshError("invalid_request", `A path has at most ${spaceLimits.pathSegments} keys.`, { field });
  }
  return path;
}

/** The index of an array as RFC 6901 writes it: decimal digits without leading zeros. */
export function isIndex(segment: string): boolean {
  return /^(0|[1-9][0-9]{0,15})$/.test(segment);
}

/** Whether `path` is at `above` or below it. */
export function startsWithPath(path: ReadPath, above: ReadPath): boolean {
  return path.length >= above.length && above.every((key, index) => key === path[index]);
}

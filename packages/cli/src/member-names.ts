// The names of a mesh's members for a table that shows keys otherwise. Only people see them: with --json nobody is asked.
import type { MeshPaths } from "@claudemesh/client/home";
import type { CommonOptions } from "./command.ts";
import { asMember, readAll } from "./member.ts";
import { type NameOf, namesAmong } from "./output/members.ts";
import type { Shell } from "./shell.ts";

/** Where the broker cannot be asked, or this home has no keys to ask it with, keys are shown by their beginnings. */
export async function readNames(shell: Shell, paths: MeshPaths, { json }: CommonOptions): Promise<NameOf> {
  if (json === true) return namesAmong([]);
  try {
    const members = await asMember(shell, paths, (call) =>
      readAll<{ pubkey: string; name: string }>(call, "members.list"),
    );
    return namesAmong(members);
  } catch (error) {
    if (shell.env.CLAUDEMESH_DEBUG !== undefined) shell.err(`claudemesh: no names of members: ${String(error)}`);
    return namesAmong([]);
  }
}

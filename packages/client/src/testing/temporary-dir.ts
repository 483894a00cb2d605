// A folder for one test, removed afterwards. Its path is short, because Unix sockets go into it.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export class TemporaryDir {
  readonly path: string = mkdtempSync(join(tmpdir(), "cm-"));

  at(...names: string[]): string {
    return join(this.path, ...names);
  }

  remove(): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

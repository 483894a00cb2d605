// Where this program's own launcher is: what starts a daemon in the background, or from a service, must be this very
// installation.
import { fileURLToPath } from "node:url";

export function launcherPath(): string {
  return fileURLToPath(new URL("../bin/claudemesh.js", import.meta.url));
}

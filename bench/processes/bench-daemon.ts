// Our daemon as a user starts it, in a fresh home whose broker is away: sends are accepted and stay. When it ends it is
// killed, and every send that was answered 202 has to be found in what it left on disk.
import { connect } from "node:net";
import { DatabaseSync } from "node:sqlite";
import { ensureMeshDir, type MeshPaths, meshPaths, writeMeshConfig } from "@claudemesh/client/home";
import { generateMemberKeys, writeKeyFile } from "@claudemesh/client/keys";
import { LongRunning } from "../../tests/support/process.ts";
import type { Closing } from "./closing.ts";

const mesh = "bench";
/** A port below 1024 that nothing uses any more; that nothing listens there is checked. */
const awayPort = 1;

export class BenchDaemon {
  readonly socketPath: string;
  readonly pid: number;
  readonly kill: () => Promise<void>;
  readonly #outboxPath: string;

  private constructor(process: LongRunning<unknown>, kill: () => Promise<void>, paths: MeshPaths) {
    this.pid = process.pid;
    this.kill = kill;
    this.socketPath = paths.sock;
    this.#outboxPath = paths.outboxDb;
  }

  static async start(home: string, closing: Closing): Promise<BenchDaemon> {
    await expectNothingAt(awayPort);
    const paths = meshPaths(home, mesh);
    ensureMeshDir(paths);
    writeKeyFile(paths.keypair, generateMemberKeys());
    writeMeshConfig(paths, {
      id: "01890a5d-ac96-774b-bcce-b302099a8057",
      name: mesh,
      broker: `http://127.0.0.1:${awayPort}`,
      member_name: mesh,
    });
    const process = new LongRunning(["daemon", "up", "--mesh", mesh, "--foreground"], { home });
    const daemon = new BenchDaemon(
      process,
      closing.add(() => process.kill()),
      paths,
    );
    await process.ready;
    return daemon;
  }

  /** After the kill: exactly the accepted sends are there. */
  verifyRows(accepted: number): void {
    const db = new DatabaseSync(this.#outboxPath);
    try {
      const rows = db.prepare("SELECT count(*) AS rows FROM outbox WHERE status = 'pending'").get()?.rows;
      if (rows !== accepted) throw new Error(`the outbox holds ${rows} pending rows after ${accepted} answers of 202`);
    } finally {
      db.close();
    }
  }
}

function expectNothingAt(port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: "127.0.0.1", port });
    socket.once("connect", () => {
      socket.destroy();
      reject(new Error(`something listens on port ${port}, where the broker should be away`));
    });
    socket.once("error", () => resolve());
  });
}

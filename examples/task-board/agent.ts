// One agent at the board: node examples/task-board/agent.ts <name> [task …]. Start it in two terminals. Uses the mesh of
// this machine, as `claudemesh up` made it.
import { chooseMesh, homeDir, meshPaths, readMeshConfig } from "@claudemesh/client/home";
import { trustOfHome } from "@claudemesh/client/home-trust";
import { identityOf, readKeyFile } from "@claudemesh/client/keys";
import { connectSpaces } from "@claudemesh/client/space";
import { fillBoard, type Task, workThrough } from "./board.ts";

const [name, ...titles] = process.argv.slice(2);
if (name === undefined) {
  console.error("Usage: node examples/task-board/agent.ts <name> [task …]");
  process.exit(2);
}

const home = homeDir(process.env);
const paths = meshPaths(home, chooseMesh(home, process.env.CLAUDEMESH_MESH));
const config = readMeshConfig(paths);
const client = connectSpaces({
  url: config.broker,
  identity: identityOf(readKeyFile(paths.keypair), config.id),
  trust: trustOfHome(paths, config),
  agent: `task-board/${name}`,
});
const board = await client.space("board", { create: true });
board.subscribePrefix("task:", (id, task, cause) => {
  const { title, owner, done } = (task as Task | undefined)?.value ?? { title: "gone", owner: null, done: false };
  console.log(`${cause.padEnd(9)} ${id} ${title}: ${done ? "done" : (owner ?? "free")}`);
});
await fillBoard(board, titles);
const done = await workThrough(
  board,
  name,
  { topic: "board" },
  () => new Promise((resolve) => setTimeout(resolve, 500)),
);
console.log(`${name} did ${done.length} of them`);
await client.close();

// The peer of the footprint scenario: the smallest Fastify server that answers, with the same compile cache as ours.
// Arguments: the socket to listen on, the folder of the cache. Prints one line when it listens.
import module from "node:module";
import process from "node:process";

const [socketPath, cacheFolder] = process.argv.slice(2);
module.enableCompileCache(cacheFolder);
const { fastify } = await import("fastify");
const server = fastify();
server.get("/v1/version", async () => ({ version: "0" }));
await server.listen({ path: socketPath });
process.stdout.write('{"event":"ready"}\n');
process.once("SIGTERM", () => void server.close());

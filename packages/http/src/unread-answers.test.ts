// Peers that ask and do not read, over real sockets, against bounds that are reached soon.
import { once } from "node:events";
import { type AddressInfo, connect, type Socket } from "node:net";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { createHttpServer } from "./server.ts";

const timeouts = { headersMs: 10_000, requestMs: 10_000, answerMs: 20, partingMs: 5_000, checkMs: 10 };

let port: number;
/** Resolves when the server has let go of the connection that came last. */
let lastClosed: Promise<unknown>;
let gate: PromiseWithResolvers<void>;
let held: PromiseWithResolvers<void>;

beforeEach(async () => {
  gate = Promise.withResolvers();
  held = Promise.withResolvers();
  const bounds = { maxBodyBytes: 4_096, maxInFlight: 3, timeouts };
  const server = createHttpServer({ ...bounds, busyCode: "busy", onError: () => undefined });
  server.get("/small", async () => ({ small: true }));
  server.get("/large", async (_request, reply) => reply.send(Buffer.alloc(16_000_000)));
  server.get("/held", async () => {
    held.resolve();
    await gate.promise;
    return { held: true };
  });
  server.server.on("connection", (socket) => {
    lastClosed = new Promise((resolve) => socket.once("close", resolve));
  });
  await server.listen({ host: "127.0.0.1", port: 0 });
  onTestFinished(async () => {
    gate.resolve();
    await server.close();
  });
  port = (server.server.address() as AddressInfo).port;
});

async function dial(): Promise<Socket> {
  const socket = connect(port, "127.0.0.1");
  onTestFinished(() => void socket.destroy());
  socket.on("error", () => undefined);
  await once(socket, "connect");
  return socket;
}

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;
const status = async () => (await fetch(`http://127.0.0.1:${port}/small`)).status;

/** Asks for more than the buffers of the system hold, and reads nothing: what is left keeps every place. */
async function fillServer(): Promise<{ readonly socket: Socket; readonly cut: Promise<unknown> }> {
  const socket = await dial();
  socket.pause();
  const cut = lastClosed;
  socket.write(get("/large").repeat(3));
  await expect.poll(status).toBe(429);
  return { socket, cut };
}

test("a peer that reads none of its answers is cut off, and other peers are served again", async () => {
  const { socket, cut } = await fillServer();
  // What it goes on to send is no sign that it reads.
  const drops = setInterval(() => socket.writable && socket.write("\r\n"), 10);
  await cut;
  clearInterval(drops);
  await expect.poll(status).toBe(200);
});

test("an answer that waits behind one that is still being made is not the peer's to read yet", async () => {
  const patient = await dial();
  patient.write(get("/small") + get("/held") + get("/small"));
  await held.promise;
  const { cut } = await fillServer();
  await cut;
  gate.resolve();
  patient.write("GET /nowhere HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  const chunks: Buffer[] = [];
  for await (const chunk of patient) chunks.push(chunk);
  const statuses = Buffer.concat(chunks)
    .toString()
    .match(/HTTP\/1\.1 \d+/g);
  expect(statuses).toEqual(["HTTP/1.1 200", "HTTP/1.1 200", "HTTP/1.1 200", "HTTP/1.1 404"]);
});

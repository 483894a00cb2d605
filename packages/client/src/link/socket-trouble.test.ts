// Against real sockets, because the words stand for what Node and OpenSSL say today.

import { readFileSync } from "node:fs";
import { createServer as createHttpServer, type Server } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { makeCertificate } from "../../../../tests/support/self-signed.ts";
import { TemporaryDir } from "../testing/temporary-dir.ts";
import { describeSocketTrouble } from "./socket-trouble.ts";

const dir = new TemporaryDir();
let plain: Server;
let secure: Server;
let ca: string;

const listening = (server: Server) =>
  new Promise<Server>((resolve) => server.listen(0, "127.0.0.1", () => resolve(server)));
const portOf = (server: Server) => (server.address() as AddressInfo).port;

beforeAll(async () => {
  const { cert, key } = makeCertificate(dir.path, "broker");
  ca = readFileSync(cert, "utf8");
  plain = await listening(createHttpServer());
  secure = await listening(createHttpsServer({ cert: ca, key: readFileSync(key) }));
});

afterAll(() => {
  plain.close();
  secure.close();
  dir.remove();
});

function troubleAt(url: string, options: object = {}): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url, options);
    socket.on("error", (error) => resolve(describeSocketTrouble(error)));
    socket.on("open", () => reject(new Error("it opened")));
  });
}

describe("what a socket complains about is said with the next step", () => {
  it("for a certificate that this host does not trust", async () => {
    expect(await troubleAt(`wss://127.0.0.1:${portOf(secure)}`)).toContain("CLAUDEMESH_CA");
  });

  it("for a certificate of another name", async () => {
    expect(await troubleAt(`wss://127.0.0.1:${portOf(secure)}`, { ca, servername: "other.example" })).toContain(
      "other names",
    );
  });

  it("for TLS where there is none, and none where there is TLS", async () => {
    expect(await troubleAt(`wss://127.0.0.1:${portOf(plain)}`)).toContain("ws://");
    expect(await troubleAt(`ws://127.0.0.1:${portOf(secure)}`)).toContain("wss://");
  });

  it("and anything else in its own words", () => {
    expect(describeSocketTrouble(new Error("connect ECONNREFUSED 127.0.0.1:1"))).toContain("ECONNREFUSED");
    expect(describeSocketTrouble(Object.assign(new Error(""), { code: "ECONNREFUSED" }))).toBe("ECONNREFUSED");
  });
});

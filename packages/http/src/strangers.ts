// Counts, by address, what peers use that have not shown a good credential yet: how many connections each address may
// have open, and how many requests may wait. A connection beyond the bound is closed as soon as it opens.
// Why: docs/decisions/0110.
import type { Server } from "node:net";
import { MeshError } from "@claudemesh/protocol/errors";
import { refusalText } from "./refusal-text.ts";

/** Both kinds of socket, plain and TLS, have these fields while they are connected. */
type Endpoint = { readonly remoteAddress?: string | undefined; readonly remotePort?: number | undefined };

/** How many requests are in flight, and how many may be. */
export type RequestRoom = { count: number; readonly max: number };

type Address = { readonly name: string; connections: number; readonly requests: RequestRoom };
type Peer = { readonly address: Address; known: boolean };

export class Strangers {
  readonly #perAddress: number;
  /** Has an entry for each address that has a connection. */
  readonly #addresses = new Map<string, Address & { open: number }>();
  readonly #peers = new Map<string, Peer>();
  readonly #refused = { connection: 0, request: 0 };

  constructor(perAddress: number) {
    this.#perAddress = perAddress;
  }

  /**
   * Counts every connection that the server accepts. `inClear`: the connection has no TLS, so that a refused one can be
   * answered with the reason.
   */
  watch(server: Server, inClear: boolean): void {
    server.on("connection", (socket) => {
      const key = keyOf(socket);
      const peer = this.#enter(socket.remoteAddress ?? "");
      if (peer !== undefined) {
        this.#peers.set(key, peer);
        socket.once("close", () => {
          this.#peers.delete(key);
          this.#leave(peer);
        });
        return;
      }
      this.noteRefusal("connection");
      if (inClear) {
        const message = `This address has ${this.#perAddress} connections open that have not shown who they are; try again later.`;
        socket.write(refusalText(new MeshError("busy", message, { limit: this.#perAddress })));
        socket.destroySoon();
      } else {
        socket.destroy();
      }
    });
  }

  /** A credential that came over this connection was good, so its peer is no stranger any more. */
  know(endpoint: Endpoint): void {
    const peer = this.#peers.get(keyOf(endpoint));
    if (peer === undefined || peer.known) return;
    peer.known = true;
    peer.address.connections -= 1;
  }

  /** The room in which requests of this connection are counted; undefined where its peer is no stranger. */
  roomOf(endpoint: Endpoint): RequestRoom | undefined {
    const peer = this.#peers.get(keyOf(endpoint));
    return peer === undefined || peer.known ? undefined : peer.address.requests;
  }

  noteRefusal(what: "connection" | "request"): void {
    this.#refused[what] += 1;
  }

  /** The present numbers over all addresses. */
  counts(): { readonly connections: number; readonly requests: number } {
    let [connections, requests] = [0, 0];
    for (const address of this.#addresses.values()) {
      connections += address.connections;
      requests += address.requests.count;
    }
    return { connections, requests };
  }

  /** The numbers since the start. */
  refused(): Readonly<Record<"connection" | "request", number>> {
    return this.#refused;
  }

  #enter(remoteAddress: string): Peer | undefined {
    const name = groupOf(remoteAddress);
    const address = this.#addresses.get(name) ?? {
      name,
      open: 0,
      connections: 0,
      requests: { count: 0, max: this.#perAddress },
    };
    if (address.connections >= this.#perAddress) return undefined;
    this.#addresses.set(name, address);
    address.open += 1;
    address.connections += 1;
    return { address, known: false };
  }

  #leave({ address, known }: Peer): void {
    if (!known) address.connections -= 1;
    const counted = this.#addresses.get(address.name);
    if (counted === undefined) return;
    counted.open -= 1;
    if (counted.open === 0) this.#addresses.delete(address.name);
  }
}

function keyOf({ remoteAddress, remotePort }: Endpoint): string {
  return `${remoteAddress} ${remotePort}`;
}

/** Addresses of which one peer can have any number count as one: with IPv6 that is a network of 64 bits. */
export function groupOf(remoteAddress: string): string {
  const [plain = ""] = remoteAddress.split("%", 1);
  if (!plain.includes(":")) return plain;
  if (plain.startsWith("::ffff:") && plain.includes(".")) return plain.slice("::ffff:".length);
  const [head = "", tail] = plain.split("::");
  const groups = head === "" ? [] : head.split(":");
  const last = tail === undefined || tail === "" ? 0 : tail.split(":").length;
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - groups.length - last);
  const all = [...groups, ...Array<string>(zeros).fill("0"), ...(tail ?? "").split(":")];
  return `${all.slice(0, 4).join(":")}::/64`;
}

// A member's socket with as little of its own as possible: asks for the broker's proof and believes any, numbers requests, and hands over what
// comes back. Loses nothing silently; knows nothing about reconnecting, features or time-outs.
import { randomBytes } from "node:crypto";
import { type MemberKeys, signerOf } from "@claudemesh/client/keys";
import { connectPath, type ProofFrame, type PushFrame, protocolVersion } from "@claudemesh/protocol/wire/frames";
import { type ConnectionKind, helloBytes } from "@claudemesh/protocol/wire/signing";
import { WebSocket } from "ws";

export type MemberSocketOptions = {
  readonly url: string;
  readonly meshId: string;
  readonly keys: MemberKeys;
  readonly kind: ConnectionKind;
  readonly onPush?: (push: PushFrame) => void;
};

type Reply = { readonly type: "reply"; readonly id: number; readonly status: number };
type OnAnswer = (status: number, text: string) => void;

export class MemberSocket {
  readonly #socket: WebSocket;
  readonly #waiting = new Map<number, OnAnswer>();
  readonly #onPush: ((push: PushFrame) => void) | undefined;
  #lastId = 1;

  private constructor(socket: WebSocket, onPush: ((push: PushFrame) => void) | undefined) {
    this.#socket = socket;
    this.#onPush = onPush;
  }

  /** Resolves once the hello is answered; `onFailed` hears of the socket's end where it was not asked for. */
  static open(options: MemberSocketOptions, onFailed: (what: string) => void): Promise<MemberSocket> {
    const { url, meshId, keys, kind, onPush } = options;
    const webSocket = new WebSocket(`${url.replace(/^http/, "ws")}${connectPath}`, { perMessageDeflate: false });
    const opened = new MemberSocket(webSocket, onPush);
    return new Promise((resolve, reject) => {
      const fail = (what: string) => {
        reject(new Error(what));
        onFailed(what);
      };
      webSocket.once("error", (error) => fail(`a socket that failed: ${error.message}`));
      webSocket.once("close", (code) => fail(`the end of a socket (${code})`));
      const client_nonce = randomBytes(32).toString("hex");
      webSocket.once("open", () => {
        const connect = { type: "connect", protocol: protocolVersion, mesh_id: meshId, nonce: client_nonce };
        webSocket.send(JSON.stringify(connect));
      });
      webSocket.once("message", (data) => {
        const { nonce: broker_nonce, broker_key } = JSON.parse(String(data)) as ProofFrame;
        const pubkey = keys.ed25519.public_key;
        const session = { client_nonce, broker_nonce, mesh_id: meshId, broker_key };
        const signature = signerOf(keys)(helloBytes({ ...session, pubkey, kind }));
        const hello = { mesh_id: meshId, pubkey, kind, signature: Buffer.from(signature).toString("hex") };
        webSocket.on("message", (frame) => opened.#hear(String(frame)));
        opened.request(`"hello",${JSON.stringify(hello).slice(1)}`, (status, text) => {
          if (status === 200) resolve(opened);
          else fail(`a hello refused: ${text}`);
        });
      });
    });
  }

  /** `rest`: the JSON of the frame from the value of its type on, so that a load need not be written anew each time. */
  request(rest: string, onAnswer: OnAnswer): void {
    const id = this.#lastId++;
    this.#waiting.set(id, onAnswer);
    this.#socket.send(`{"id":${id},"type":${rest}`);
  }

  close(): void {
    this.#socket.removeAllListeners("close");
    this.#socket.terminate();
  }

  #hear(text: string): void {
    const frame = JSON.parse(text) as Reply | PushFrame;
    if (frame.type !== "reply") {
      this.#onPush?.(frame);
      return;
    }
    const onAnswer = this.#waiting.get(frame.id);
    this.#waiting.delete(frame.id);
    onAnswer?.(frame.status, text);
  }
}

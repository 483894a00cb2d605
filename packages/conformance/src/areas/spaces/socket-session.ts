// A session that a WebSocket holds: it opens, watches, commits, and reads the frames that are pushed to it.
import { type Answer, expectAnswer } from "../../frame/expect.ts";
import { aCount, aList, aText } from "../../frame/pattern.ts";
import type { Frame, SocketPeer } from "../../transport/socket-peer.ts";
import type { BrokerWorld, MeshMember } from "../broker/world.ts";
import type { Operation, SessionCredentials } from "./session.ts";

type Upsert = {
  readonly branch: string;
  readonly id: string;
  readonly seq: number;
  readonly document?: unknown;
  readonly deleted?: true;
};

export type SyncFrame = {
  readonly branch: string;
  readonly fromSeq: number;
  readonly toSeq: number;
  readonly caughtUpLocalSeq: number;
  readonly upserts: readonly Upsert[];
  readonly removes: readonly string[];
};

export class SocketSession {
  readonly peer: SocketPeer;
  readonly space: string;
  readonly credentials: SessionCredentials;
  localSeq: number;

  constructor(peer: SocketPeer, space: string, opened: Answer) {
    expectAnswer(opened, 200, { sessionId: aText, sessionToken: aText, seq: aCount });
    this.peer = peer;
    this.space = space;
    this.credentials = { sessionId: String(opened.body.sessionId), sessionToken: String(opened.body.sessionToken) };
    this.localSeq = Number(opened.body.lastLocalSeq);
  }

  static async open(
    world: BrokerWorld,
    member: MeshMember,
    space: string,
    more: object = {},
    peer?: SocketPeer,
  ): Promise<SocketSession> {
    const socket = peer ?? (await member.connect("client"));
    const opened = await socket.request("space.open", { space, openId: world.fresh("open"), ...more });
    return new SocketSession(socket, space, opened);
  }

  watch(input: object): Promise<Answer> {
    return this.peer.request("space.watch", { space: this.space, ...this.credentials, ...input });
  }

  build(operations: readonly Operation[], more: object = {}): object {
    this.localSeq += 1;
    return { localSeq: this.localSeq, reads: { confirmed: [], pending: [] }, operations, ...more };
  }

  send(commit: object): Promise<Answer> {
    return this.peer.request("space.commit", { space: this.space, ...this.credentials, commit });
  }

  commit(operations: readonly Operation[], more: object = {}): Promise<Answer> {
    return this.send(this.build(operations, more));
  }

  /** The next frame of this session, in the order in which they came. */
  async next(what: string): Promise<SyncFrame> {
    return readSync(await this.peer.next(what, (frame) => this.#isOwn(frame)));
  }

  /** Frames that have arrived; a reply shows that everything before it has arrived. */
  arrived(): readonly SyncFrame[] {
    return this.peer.arrived.filter((frame) => this.#isOwn(frame)).map(readSync);
  }

  /** Reads frames until one contains the entity with this seq. */
  async nextAbout(id: string, seq: number): Promise<SyncFrame> {
    for (;;) {
      const frame = await this.next(`a sync push with ${id} at ${seq}`);
      if (frame.upserts.some((upsert) => upsert.id === id && upsert.seq === seq)) return frame;
    }
  }

  #isOwn(frame: Frame): boolean {
    return frame.type === "sync" && frame.sessionId === this.credentials.sessionId;
  }
}

function readSync(frame: Frame): SyncFrame {
  const shape = { fromSeq: aCount, toSeq: aCount, caughtUpLocalSeq: aCount, upserts: aList, removes: aList };
  expectAnswer({ status: 200, body: frame, request: "push sync" }, 200, shape);
  return frame as SyncFrame;
}

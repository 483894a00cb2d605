// Bounds how many requests may be in flight. Requests of peers that have shown a good credential share one room. A
// request of a stranger counts in the room of its address, so that strangers can neither fill the shared room nor keep
// each other out.
import type { ServerResponse } from "node:http";
import { type ErrorCode, MeshError } from "@claudemesh/protocol/errors";
import type { FastifyInstance, FastifyReply } from "fastify";
import type { RequestRoom, Strangers } from "./strangers.ts";

declare module "fastify" {
  interface FastifyReply {
    /**
     * The caller has shown a good credential: from now on the request counts among those of known peers, if there is
     * room.
     */
    admit: () => void;
  }
}

export type RequestBounds = {
  readonly maxInFlight: number;
  /** The code of the refusal for one request too many. */
  readonly busyCode: Extract<ErrorCode, "busy" | "daemon_busy">;
  /** Absent: every peer is known. */
  readonly strangers?: Strangers;
};

export function boundRequestsInFlight(server: FastifyInstance, options: RequestBounds): void {
  const { maxInFlight, busyCode, strangers } = options;
  const sharedRoom: RequestRoom = { count: 0, max: maxInFlight };
  const rooms = new Map<ServerResponse, RequestRoom>();
  const enter = (reply: FastifyReply, room: RequestRoom) => {
    rooms.set(reply.raw, room);
    room.count += 1;
    if (room.count <= room.max) return;
    reply.header("retry-after", "1");
    throw new MeshError(busyCode, undefined, { limit: room.max });
  };
  function leave(this: ServerResponse): void {
    const room = rooms.get(this);
    rooms.delete(this);
    if (room !== undefined) room.count -= 1;
  }
  server.decorateReply("admit", function () {
    strangers?.know(this.request.raw.socket);
    const room = rooms.get(this.raw);
    if (room === undefined || room === sharedRoom) return;
    room.count -= 1;
    enter(this, sharedRoom);
  });
  server.addHook("onRequest", (request, reply, done) => {
    if (request.routeOptions.config?.longLived === true) {
      done();
      return;
    }
    const strangerRoom = strangers?.roomOf(request.raw.socket);
    // This event is emitted once. A listener that removes itself would cost more than everything else here.
    reply.raw.on("close", leave);
    try {
      enter(reply, strangerRoom ?? sharedRoom);
    } catch (error) {
      if (strangerRoom !== undefined) strangers?.noteRefusal("request");
      done(error as MeshError);
      return;
    }
    done();
  });
}

// Refuses bodies that are compressed or not in UTF-8. Reading them as they are would give something that the sender did
// not mean, so they are refused before they are read.
import { MeshError } from "@claudemesh/protocol/errors";
import type { FastifyInstance } from "fastify";

export function refuseEncodings(server: FastifyInstance): void {
  server.addHook("onRequest", (request, reply, done) => {
    const { "content-encoding": encoding, "content-type": type } = request.raw.headers;
    if (encoding !== undefined && encoding.trim().toLowerCase() !== "identity") {
      reply.header("accept-encoding", "identity");
      done(new MeshError("unsupported_media_type", "Send the body as it is, without Content-Encoding."));
    } else if (type !== undefined && !isUtf8(type)) {
      done(new MeshError("unsupported_media_type", "Send JSON in UTF-8; no other charset is read."));
    } else {
      done();
    }
  });
}

/** A content type without a charset counts as UTF-8, which is what JSON always is. */
function isUtf8(contentType: string): boolean {
  return contentType
    .split(";")
    .slice(1)
    .every((parameter) => {
      const [name = "", value = ""] = parameter.split("=", 2);
      if (name.trim().toLowerCase() !== "charset") return true;
      const charset = value.trim().toLowerCase();
      return ["utf-8", '"utf-8"', "utf8", '"utf8"'].includes(charset);
    });
}

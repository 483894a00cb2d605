// Bodies come as they are, in UTF-8: one that says it is packed or written otherwise would be read as something that its
// sender did not mean, and is refused before it is read.
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

/** What names no charset is taken for UTF-8, as JSON always is. */
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

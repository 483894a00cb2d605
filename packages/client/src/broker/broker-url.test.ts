import { describe, expect, it } from "vitest";
import { brokerHttpUrl, brokerSocketUrl } from "./broker-url.ts";

describe("a broker's address", () => {
  it.each([
    ["ws://127.0.0.1:7600", "ws://127.0.0.1:7600/v1/connect", "http://127.0.0.1:7600/v1/meshes"],
    ["http://127.0.0.1:7600/", "ws://127.0.0.1:7600/v1/connect", "http://127.0.0.1:7600/v1/meshes"],
    ["wss://mesh.example.org", "wss://mesh.example.org/v1/connect", "https://mesh.example.org/v1/meshes"],
    ["https://example.org/mesh/", "wss://example.org/mesh/v1/connect", "https://example.org/mesh/v1/meshes"],
    ["WS://[::1]:7600", "ws://[::1]:7600/v1/connect", "http://[::1]:7600/v1/meshes"],
  ])("%s serves sockets and HTTP", (broker, socket, http) => {
    expect(brokerSocketUrl(broker)).toBe(socket);
    expect(brokerHttpUrl(broker, "/v1/meshes")).toBe(http);
  });

  it("that is refused is quoted only where it has no place for a secret", () => {
    expect(() => brokerHttpUrl("ftp://x", "")).toThrow('"ftp://x" is not');
    for (const broker of ["ws://me:secret@x", "ws://x?token=secret", "ws://me:se/cret@x"]) {
      expect(() => brokerHttpUrl(broker, "")).toThrow(/^This is not(?!.*cret)/);
    }
  });

  it.each(["", "mesh.example.org", "127.0.0.1:7600", "ftp://x", "ws://x?token=1", "ws://me:secret@x", "ws://x#y"])(
    "%j is refused",
    (broker) => {
      expect(() => brokerSocketUrl(broker)).toThrow(expect.objectContaining({ code: "invalid_request" }));
    },
  );
});

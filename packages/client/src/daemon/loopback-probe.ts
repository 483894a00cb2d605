// Checks whether a daemon answers on its loopback port and accepts our token. This one request is for diagnosis;
// programs that talk to a daemon use its socket.
import { request as httpRequest } from "node:http";

export type LoopbackAnswer =
  | { readonly type: "answered"; readonly status: number }
  | { readonly type: "silent"; readonly why: string };

const timeoutMs = 3_000;

export function probeLoopback(port: number, token: string): Promise<LoopbackAnswer> {
  return new Promise((resolve) => {
    const silent = (why: string) => resolve({ type: "silent", why });
    const headers = { authorization: `Bearer ${token}` };
    const request = httpRequest({
      host: "127.0.0.1",
      port,
      path: "/v1/version",
      headers,
      agent: false,
      timeout: timeoutMs,
    });
    request.on("response", (response) => {
      response.resume();
      resolve({ type: "answered", status: response.statusCode ?? 0 });
    });
    request.on("timeout", () => request.destroy(new Error(`nothing came within ${timeoutMs} ms`)));
    request.on("error", (error: NodeJS.ErrnoException) => silent(error.code ?? error.message));
    request.end();
  });
}

// Whatever can be read over HTTP can be asked for its head alone.
import { expect, onTestFinished, test } from "vitest";
import { createHttpServer } from "./server.ts";

test("HEAD is answered as GET is, without the body, errors too; and refused where GET is not answered", async () => {
  const server = createHttpServer({ maxBodyBytes: 1_000, maxInFlight: 3, busyCode: "busy", onError: () => undefined });
  onTestFinished(() => server.close());
  server.get("/thing", async () => ({ thing: "with a body" }));
  server.get("/boom", async () => {
    throw new Error("broken");
  });
  server.post("/things", async () => ({}));
  for (const url of ["/thing", "/boom"]) {
    const get = await server.inject(url);
    const head = await server.inject({ method: "HEAD", url });
    expect([head.statusCode, head.headers["content-length"]]).toEqual([get.statusCode, get.headers["content-length"]]);
    expect([head.body, get.body.length > 0]).toEqual(["", true]);
  }
  expect((await server.inject({ method: "HEAD", url: "/things" })).statusCode).toBe(405);
});

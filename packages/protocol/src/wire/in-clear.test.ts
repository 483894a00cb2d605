import { describe, expect, it } from "vitest";
import { isInClear } from "./in-clear.ts";

describe("what is said to a broker", () => {
  it.each([
    "ws://mesh.example.org",
    "http://192.0.2.7:7600",
    "WS://[2001:db8::7]:7600/mesh",
    "ws://127.example.org",
    "http://0.0.0.0:7600",
    "ws://localhost.example.org",
  ])("at %s can be read on the way", (url) => {
    expect(isInClear(url)).toBe(true);
  });

  it.each([
    "wss://mesh.example.org",
    "https://192.0.2.7",
    "ws://127.0.0.1:7600",
    "http://127.9.9.9",
    "ws://LOCALHOST:1",
    "http://[::1]:7600",
    "ws://[::ffff:127.0.0.1]:7600",
    "mesh.example.org",
    "",
  ])("at %j cannot, or it is no address", (url) => {
    expect(isInClear(url)).toBe(false);
  });
});

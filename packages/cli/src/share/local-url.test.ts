import { isInClear } from "@claudemesh/protocol/wire/in-clear";
import { expect, it } from "vitest";
import { urlToType } from "./local-url.ts";

it("a broker that listens on every address says one that its own machine's commands take", () => {
  const publicUrl = "http://10.0.0.1:7600";
  for (const url of ["http://0.0.0.0:7600", "http://[::]:7600", "http://127.0.0.1:7600"]) {
    expect(urlToType({ url, publicUrl })).toBe("http://127.0.0.1:7600");
    expect(isInClear(urlToType({ url, publicUrl }))).toBe(false);
  }
  const secure = "https://mesh.example.org:7600";
  expect(urlToType({ url: "https://0.0.0.0:7600", publicUrl: secure })).toBe(secure);
});

// Where an option's value comes from.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { readOptions } from "./options.ts";

const specs = [
  { flag: "url", value: "<url>", help: "" },
  { flag: "token", value: "<t>", help: "", secretEnv: "TOKEN" },
  { flag: "invite", value: "<i>", help: "", repeatable: true },
];

describe("an option", () => {
  test("has one value, or several where it is repeatable", () => {
    const values = readOptions(specs, { url: ["a"], invite: ["x", "y"] });
    expect([values.one("url"), values.one("token"), values.all("invite")]).toEqual(["a", undefined, ["x", "y"]]);
    expect(() => readOptions(specs, { url: ["a", "b"] })).toThrow("--url is given more than once");
  });

  test("that is a secret comes from the flag, else from a file, else from the environment", () => {
    const folder = mkdtempSync(join(tmpdir(), "cm-options-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const file = join(folder, "token");
    writeFileSync(file, "from-file\n");
    const env = { TOKEN: "from-env" };
    expect(readOptions(specs, { token: ["given"], "token-file": [file] }, env).one("token")).toBe("given");
    expect(readOptions(specs, { "token-file": [file] }, env).one("token")).toBe("from-file");
    expect(readOptions(specs, {}, env).one("token")).toBe("from-env");
    expect(readOptions(specs, {}, { TOKEN: "" }).one("token")).toBeUndefined();
    expect(() => readOptions(specs, { "token-file": [join(folder, "none")] }, env)).toThrow(/--token-file: ENOENT/);
  });
});

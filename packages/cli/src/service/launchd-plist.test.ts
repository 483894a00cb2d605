// The property list by its meaning: read back by a small reader of the format, and by plutil where there is one.
import { spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { oddFolders, serviceSpec } from "../testing/service-specs.ts";
import { launchdHomeMark, launchdLabel, launchdPlist } from "./launchd-plist.ts";

type Value = string | number | boolean | Value[] | { [key: string]: Value };

const entities: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">" };
const decode = (text: string) => {
  expect(text).not.toMatch(/[<>]|&(?!amp;|lt;|gt;)/);
  return text.replace(/&(\w+);/g, (_, name: string) => entities[name] ?? "");
};

function readPlist(text: string): Value {
  const tokens = [...text.matchAll(/<(\/?)(\w+)(\/?)>([^<]*)/g)].map(([, close, name = "", empty, inner = ""]) => ({
    name,
    kind: close === "/" ? "close" : empty === "/" ? "empty" : "open",
    inner,
  }));
  let at = tokens.findIndex(({ name }) => name === "dict");
  const readOne = (): Value => {
    const token = tokens[at++];
    if (token?.kind === "empty") return token.name === "true";
    if (token?.name === "array") {
      const items: Value[] = [];
      while (tokens[at]?.kind !== "close") items.push(readOne());
      at++;
      return items;
    }
    if (token?.name === "dict") {
      const entries: [string, Value][] = [];
      while (tokens[at]?.kind !== "close") entries.push([String(readOne()), readOne()]);
      at++;
      return Object.fromEntries(entries);
    }
    expect(tokens[at++]).toMatchObject({ name: token?.name, kind: "close" });
    return token?.name === "integer" ? Number(token.inner) : decode(token?.inner ?? "");
  };
  return readOne();
}

describe("the property list", () => {
  it("starts the launcher by its absolute path, in the foreground, for this mesh and home", () => {
    expect(readPlist(launchdPlist(serviceSpec()))).toMatchObject({
      Label: launchdLabel(serviceSpec()),
      ProgramArguments: ["/opt/claudemesh/bin/claudemesh.js", "daemon", "up", "--foreground", "--mesh", "acme"],
      EnvironmentVariables: {
        CLAUDEMESH_HOME: "/srv/mesh",
        CLAUDEMESH_REPLACED_EXIT: "0",
        PATH: expect.stringMatching(/^\/opt\/node\/bin:/),
      },
      RunAtLoad: true,
    });
  });

  it("starts again after a failure, with a pause, and not after a stop; stopping leaves it time", () => {
    expect(readPlist(launchdPlist(serviceSpec()))).toMatchObject({
      KeepAlive: { SuccessfulExit: false },
      ThrottleInterval: 30,
      ExitTimeOut: 15,
      Umask: 0o077,
    });
  });

  it("names the home's owner where the system runs it, and no user where the user runs it", () => {
    expect(readPlist(launchdPlist(serviceSpec({ scope: "system" })))).toMatchObject({ UserName: "alice" });
    expect(readPlist(launchdPlist(serviceSpec()))).not.toHaveProperty("UserName");
  });

  it.each(oddFolders)("means %j where that is the home and the program", (folder) => {
    const spec = serviceSpec({ home: folder, launcher: `${folder}/c.js` });
    const value = readPlist(launchdPlist(spec)) as { ProgramArguments: string[] };
    expect(value).toMatchObject({ EnvironmentVariables: { CLAUDEMESH_HOME: folder } });
    expect(value.ProgramArguments[0]).toBe(`${folder}/c.js`);
    expect(launchdPlist(spec)).toContain(launchdHomeMark(spec));
    expect(launchdPlist(serviceSpec())).not.toContain(launchdHomeMark(spec));
  });

  it("is refused for a path with control characters", () => {
    expect(() => launchdPlist(serviceSpec({ home: "/srv/\u0000" }))).toThrow(/path/);
  });
});

describe.runIf(spawnSync("plutil", ["-help"]).status === 0)("plutil", () => {
  it.each(oddFolders)("accepts the list for %j", (home) => {
    const { status } = spawnSync("plutil", ["-lint", "-"], { input: launchdPlist(serviceSpec({ home })) });
    expect(status).toBe(0);
  });
});

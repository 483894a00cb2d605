import { describe, expect, it } from "vitest";
import { serviceSpec } from "../testing/service-specs.ts";
import { findCiVariable } from "./ci-environment.ts";
import { type PlatformFacts, planService } from "./service-plan.ts";

const facts = (given: Partial<PlatformFacts> = {}): PlatformFacts => ({
  platform: "linux",
  env: {},
  userHome: "/u/alice",
  ...given,
});

describe("on Linux", () => {
  it("the user's unit goes into the user's own folder and is registered with the user's own manager", () => {
    const plan = planService(serviceSpec(), facts());
    expect(plan.path).toBe("/u/alice/.config/systemd/user/claudemesh-acme.service");
    const commands = [plan.probe, plan.start, plan.halt, plan.disable.command, ...plan.register, ...plan.forget];
    for (const command of commands) expect(command.slice(0, 2)).toEqual(["systemctl", "--user"]);
    expect(plan.advice).toContain("enable-linger");
  });

  it("XDG_CONFIG_HOME moves it, unless that is relative", () => {
    const at = (XDG_CONFIG_HOME: string) => planService(serviceSpec(), facts({ env: { XDG_CONFIG_HOME } })).path;
    expect(at("/u/conf")).toBe("/u/conf/systemd/user/claudemesh-acme.service");
    expect(at("conf")).toBe("/u/alice/.config/systemd/user/claudemesh-acme.service");
    expect(at("")).toBe("/u/alice/.config/systemd/user/claudemesh-acme.service");
  });

  it("the system's unit goes to the machine's folder", () => {
    const plan = planService(serviceSpec({ scope: "system" }), facts());
    expect(plan.path).toBe("/etc/systemd/system/claudemesh-acme.service");
    expect(plan.start).toEqual(["systemctl", "start", "claudemesh-acme.service"]);
    expect(plan.text).toContain("\nUser=1000\n");
  });
});

describe("on macOS", () => {
  it("the user's agent is loaded into the user's own domain", () => {
    const plan = planService(serviceSpec(), facts({ platform: "darwin" }));
    expect(plan.path).toBe("/u/alice/Library/LaunchAgents/claudemesh.daemon.acme.plist");
    expect(plan.start).toEqual(["launchctl", "bootstrap", "gui/1000", plan.path]);
    expect(plan.halt).toEqual(["launchctl", "bootout", "gui/1000/claudemesh.daemon.acme"]);
  });

  it("the system's daemon is loaded into the system's", () => {
    const plan = planService(serviceSpec({ scope: "system" }), facts({ platform: "darwin" }));
    expect(plan.path).toBe("/Library/LaunchDaemons/claudemesh.daemon.acme.plist");
    expect(plan.start).toEqual(["launchctl", "bootstrap", "system", plan.path]);
  });
});

it.each(["win32", "freebsd"] as const)("on %s it is refused, and says what to keep running instead", (platform) => {
  expect(() => planService(serviceSpec(), facts({ platform }))).toThrow(/daemon up --foreground --mesh acme/);
});

describe("a CI environment", () => {
  it.each(["CI", "GITHUB_ACTIONS", "GITLAB_CI", "BUILDKITE", "CIRCLECI", "JENKINS_URL"])("is known by %s", (name) => {
    expect(findCiVariable({ [name]: "true" })).toBe(name);
    expect(findCiVariable({ [name]: "" })).toBeUndefined();
  });

  it("is none where nothing says so, or where CI is denied", () => {
    expect(findCiVariable({})).toBeUndefined();
    expect(findCiVariable({ CI: "false", HOME: "/u/alice" })).toBeUndefined();
    expect(findCiVariable({ CI: "0" })).toBeUndefined();
  });
});

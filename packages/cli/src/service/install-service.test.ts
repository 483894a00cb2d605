// Installing and taking away, against files and a service manager that are only pretended: what is written, what is
// run in which order, and what is left to the user.
import { describe, expect, it } from "vitest";
import { serviceSpec } from "../testing/service-specs.ts";
import { installService, type ServicePorts, uninstallService } from "./install-service.ts";
import { planService, type ServicePlan } from "./service-plan.ts";

const planFor = (platform: "linux" | "darwin", home = "/srv/mesh"): ServicePlan =>
  planService(serviceSpec({ home }), { platform, env: {}, userHome: "/u/alice" });

class Machine implements ServicePorts {
  readonly files = new Map<string, string>();
  readonly ran: string[] = [];
  readonly folders = new Set(["/run/systemd/system"]);
  readonly programs = new Set(["systemctl", "launchctl"]);
  /** The beginning of commands that fail, with their complaint. */
  readonly failing = new Map<string, string>();
  daemonUp = false;
  serviceUp = false;

  read = (path: string) => this.files.get(path);
  write = (path: string, text: string) => void this.files.set(path, text);
  remove = (path: string) => void this.files.delete(path);
  isFolder = (path: string) => this.folders.has(path);
  hasProgram = (name: string) => this.programs.has(name);
  isUp = async () => this.daemonUp;
  handOver = "claudemesh daemon down";
  untilGone = async () => void this.ran.push("(the daemon is gone)");
  run = (words: readonly string[]) => {
    const line = words.join(" ");
    if (/is-active|launchctl print/.test(line)) return this.serviceUp ? undefined : "inactive";
    this.ran.push(line);
    return [...this.failing].find(([start]) => line.startsWith(start))?.[1];
  };
}

const unit = "claudemesh-acme.service";

describe("installing", () => {
  it("writes the file, tells the manager and starts the service", async () => {
    const machine = new Machine();
    const plan = planFor("linux");
    expect(await installService(plan, machine, false)).toEqual({ file: "written", service: "started", next: [] });
    expect(machine.files.get(plan.path)).toBe(plan.text);
    expect(machine.ran).toEqual([
      "systemctl --user daemon-reload",
      `systemctl --user enable ${unit}`,
      `systemctl --user start ${unit}`,
    ]);
  });

  it("again changes nothing more", async () => {
    const machine = new Machine();
    const plan = planFor("linux");
    await installService(plan, machine, false);
    machine.serviceUp = true;
    machine.daemonUp = true;
    machine.ran.length = 0;
    expect(await installService(plan, machine, false)).toEqual({ file: "unchanged", service: "running", next: [] });
    expect(machine.ran.filter((line) => /start|stop/.test(line))).toEqual([]);
  });

  it.each(["linux", "darwin"] as const)(
    "over an older file on %s restarts, once the old daemon is gone",
    async (os) => {
      const machine = new Machine();
      const plan = planFor(os);
      machine.files.set(plan.path, `${plan.text}<!-- of an older version -->`);
      machine.serviceUp = true;
      machine.daemonUp = true;
      expect(await installService(plan, machine, false)).toMatchObject({ file: "written", service: "restarted" });
      expect(machine.ran.slice(-3)).toEqual([plan.halt.join(" "), "(the daemon is gone)", plan.start.join(" ")]);
    },
  );

  it("leaves a daemon alone that was started by hand, and says how to hand over", async () => {
    const machine = new Machine();
    machine.daemonUp = true;
    const report = await installService(planFor("linux"), machine, false);
    expect(report).toMatchObject({ service: "not started" });
    expect(report.next).toEqual(["claudemesh daemon down", `systemctl --user start ${unit}`]);
    expect(machine.ran).not.toContain(`systemctl --user start ${unit}`);
  });

  it.each([
    ["the program is missing", (machine: Machine) => machine.programs.delete("systemctl")],
    ["systemd does not run", (machine: Machine) => machine.folders.clear()],
  ])("runs nothing where %s, and says what to type", async (_, lose) => {
    const machine = new Machine();
    lose(machine);
    const plan = planFor("linux");
    const report = await installService(plan, machine, false);
    expect(machine.ran).toEqual([]);
    expect(machine.files.get(plan.path)).toBe(plan.text);
    expect(report).toEqual({
      file: "written",
      service: "not started",
      next: ["systemctl --user daemon-reload", `systemctl --user enable ${unit}`, `systemctl --user start ${unit}`],
    });
  });

  it("fails with what the manager complained about, and can be done again", async () => {
    const machine = new Machine();
    machine.failing.set("systemctl --user daemon-reload", "Failed to connect to bus.");
    const plan = planFor("linux");
    await expect(installService(plan, machine, false)).rejects.toThrow(/daemon-reload.*Failed to connect to bus/);
    machine.failing.clear();
    expect(await installService(plan, machine, false)).toMatchObject({ file: "unchanged", service: "started" });
  });

  it("shuts the service in less far where the host does not start it otherwise, and stays with that", async () => {
    const machine = new Machine();
    const plan = planFor("linux");
    const started: (string | undefined)[] = [];
    const run = (words: readonly string[]) => {
      const complaint = machine.run(words);
      if (!words.includes("start")) return complaint;
      started.push(machine.files.get(plan.path));
      return machine.files.get(plan.path) === plan.text ? "the control process exited with error code" : complaint;
    };
    const report = { file: "written", service: "started", next: [], confinement: "basic" };
    expect(await installService(plan, { ...machine, run }, false)).toEqual(report);
    expect(started).toEqual([plan.text, plan.basicText]);
    expect(machine.ran.slice(-4)).toEqual([
      `systemctl --user stop ${unit}`,
      "systemctl --user daemon-reload",
      `systemctl --user enable ${unit}`,
      `systemctl --user start ${unit}`,
    ]);
    machine.serviceUp = true;
    expect(await installService(plan, { ...machine, run }, false)).toMatchObject({ file: "unchanged" });
    expect(machine.files.get(plan.path)).toBe(plan.basicText);
  });

  it("fails where the service starts in neither way", async () => {
    const machine = new Machine();
    machine.failing.set("systemctl --user start", "Unit is masked.");
    await expect(installService(planFor("linux"), machine, false)).rejects.toThrow(/Unit is masked/);
  });

  it("does not touch a file that was written for another home or by another program, unless forced to", async () => {
    for (const found of [planFor("linux", "/srv/other").text, "[Unit]\nDescription=mine\n"]) {
      const machine = new Machine();
      const plan = planFor("linux");
      machine.files.set(plan.path, found);
      await expect(installService(plan, machine, false)).rejects.toThrow(/--force/);
      expect(machine.files.get(plan.path)).toBe(found);
      expect(machine.ran).toEqual([]);
      expect(await installService(plan, machine, true)).toMatchObject({ file: "written" });
      expect(machine.files.get(plan.path)).toBe(plan.text);
    }
  });
});

describe("taking away", () => {
  const installed = (os: "linux" | "darwin") => {
    const machine = new Machine();
    const plan = planFor(os);
    machine.files.set(plan.path, plan.text);
    return { machine, plan };
  };

  it("stops the service first, then removes the file, then tells the manager", () => {
    const { machine, plan } = installed("linux");
    machine.serviceUp = true;
    const fileWhenRun: boolean[] = [];
    const run = (words: readonly string[]) => {
      fileWhenRun.push(machine.files.has(plan.path));
      return machine.run(words);
    };
    expect(uninstallService(plan, { ...machine, run }, false)).toEqual({
      file: "removed",
      service: "stopped",
      next: [],
    });
    expect(machine.ran).toEqual([`systemctl --user disable --now ${unit}`, "systemctl --user daemon-reload"]);
    expect(fileWhenRun).toEqual([true, false]);
  });

  it("again finds nothing to do", () => {
    const { machine, plan } = installed("linux");
    uninstallService(plan, machine, false);
    machine.ran.length = 0;
    expect(uninstallService(plan, machine, false)).toEqual({ file: "absent", service: "not started", next: [] });
    expect(machine.ran).toEqual([]);
  });

  it("on macOS unloads only what is loaded", () => {
    const { machine, plan } = installed("darwin");
    uninstallService(plan, machine, false);
    expect(machine.ran).toEqual([]);
    machine.files.set(plan.path, plan.text);
    machine.serviceUp = true;
    uninstallService(plan, machine, false);
    expect(machine.ran).toEqual(["launchctl bootout gui/1000/claudemesh.daemon.acme"]);
  });

  it("keeps the file of a service that could not be stopped", () => {
    const { machine, plan } = installed("linux");
    machine.failing.set("systemctl --user disable", "Access denied.");
    expect(() => uninstallService(plan, machine, false)).toThrow(/Access denied/);
    expect(machine.files.has(plan.path)).toBe(true);
  });

  it("runs nothing where systemd does not run", () => {
    const { machine, plan } = installed("linux");
    machine.folders.clear();
    expect(uninstallService(plan, machine, false).file).toBe("removed");
    expect(machine.ran).toEqual([]);
  });

  it("leaves a foreign file alone, unless forced to", () => {
    const { machine, plan } = installed("linux");
    machine.files.set(plan.path, "[Unit]\n");
    expect(() => uninstallService(plan, machine, false)).toThrow(/--force/);
    expect(uninstallService(plan, machine, true).file).toBe("removed");
  });
});

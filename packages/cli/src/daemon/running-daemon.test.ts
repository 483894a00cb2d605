import { describe, expect, it } from "vitest";
import { serviceInControlGroup } from "./running-daemon.ts";

describe("the service that a daemon belongs to", () => {
  it("is read from its control group", () => {
    expect(serviceInControlGroup("0::/system.slice/claudemesh-acme.service\n")).toEqual({
      unit: "claudemesh-acme.service",
      scope: "system",
    });
    const user = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/claudemesh-my.mesh.service\n";
    expect(serviceInControlGroup(user)).toEqual({ unit: "claudemesh-my.mesh.service", scope: "user" });
  });

  it.each([
    "",
    "0::/\n",
    "0::/user.slice/user-1000.slice/session-2.scope\n",
    "0::/system.slice/ssh.service\n",
    "0::/system.slice/claudemesh-acme.service/inner\n",
  ])("is none in %j", (text) => {
    expect(serviceInControlGroup(text)).toBeUndefined();
  });
});

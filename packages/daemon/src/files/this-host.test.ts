import { describe, expect, it } from "vitest";
import { type HostSources, readHostFacts } from "./this-host.ts";

const id = "0123456789abcdef0123456789abcdef";
const otherId = "fedcba9876543210fedcba9876543210";

function denied(): never {
  throw Object.assign(new Error("EACCES: permission denied"), { code: "EACCES" });
}

function linux(files: Readonly<Record<string, string | (() => never)>>, given: Partial<HostSources> = {}): HostSources {
  const names = new Set(Object.keys(files).flatMap((path) => /^\/sys\/class\/net\/([^/]+)\//.exec(path)?.[1] ?? []));
  return {
    platform: "linux",
    readText: (path) => {
      const text = files[path];
      return typeof text === "function" ? text() : text;
    },
    listFolder: (path) => (path === "/sys/class/net" ? [...names] : []),
    resolveLink: (path) => `/sys/devices/pci0000:00/${path.split("/").at(-1)}`,
    describeMac: () => denied(),
    listInterfaces: () => [],
    ...given,
  };
}

describe("the id of a Linux host", () => {
  it("is its machine id", () => {
    const files = { "/etc/machine-id": `${id}\n`, "/var/lib/dbus/machine-id": `${otherId}\n` };
    expect(readHostFacts(linux(files))).toEqual({ hostId: id, mac: undefined, hostIdUnreadable: false });
  });

  it.each([
    ["is missing", undefined],
    ["is empty, as in a container image", ""],
    ["is not initialised yet", "uninitialized\n"],
    ["is all zeroes", "0".repeat(32)],
  ])("is that of D-Bus where the first %s", (_, text) => {
    const files = { ...(text === undefined ? {} : { "/etc/machine-id": text }), "/var/lib/dbus/machine-id": id };
    expect(readHostFacts(linux(files)).hostId).toBe(id);
  });

  it("is none where both are missing, and unreadable where one is there and closed to us", () => {
    expect(readHostFacts(linux({}))).toEqual({ hostId: undefined, mac: undefined, hostIdUnreadable: false });
    expect(readHostFacts(linux({ "/etc/machine-id": denied })).hostIdUnreadable).toBe(true);
    const closed = linux({ "/etc/machine-id": denied, "/var/lib/dbus/machine-id": id });
    expect(readHostFacts(closed)).toMatchObject({ hostId: id, hostIdUnreadable: false });
  });
});

describe("the address of a Linux host", () => {
  const card = (name: string, mac: string, type = "0") => ({
    [`/sys/class/net/${name}/address`]: `${mac}\n`,
    [`/sys/class/net/${name}/addr_assign_type`]: `${type}\n`,
  });

  it("is the hardware's own, not one of a device that software makes", () => {
    const files = { ...card("eth0", "a4:83:e7:00:00:01"), ...card("eth1", "a4:83:e7:00:00:02") };
    expect(readHostFacts(linux(files)).mac).toBe("a4:83:e7:00:00:01");
    const resolveLink = (path: string) => `/sys/devices/${path.endsWith("eth0") ? "virtual" : "pci0"}/net/x`;
    expect(readHostFacts(linux(files, { resolveLink })).mac).toBe("a4:83:e7:00:00:02");
  });

  it("is none that was made up, copied or set", () => {
    for (const type of ["1", "2", "3"]) {
      expect(readHostFacts(linux(card("wlan0", "a4:83:e7:00:00:01", type))).mac).toBeUndefined();
    }
  });

  it("is none of an interface that goes away meanwhile", () => {
    const files = { ...card("eth1", "a4:83:e7:00:00:02"), "/sys/class/net/eth0/address": denied };
    expect(readHostFacts(linux(files)).mac).toBe("a4:83:e7:00:00:02");
  });

  it("comes from the system's list where the kernel shows no folder of interfaces", () => {
    const listInterfaces = () => [
      { name: "docker0", mac: "a4:83:e7:00:00:03" },
      { name: "eth0", mac: "a4:83:e7:00:00:04" },
    ];
    expect(readHostFacts(linux({}, { listInterfaces })).mac).toBe("a4:83:e7:00:00:04");
  });
});

describe("a Mac", () => {
  const mac = (describeMac: () => string): HostSources => ({
    ...linux({}),
    platform: "darwin",
    describeMac,
    listInterfaces: () => [
      { name: "awdl0", mac: "a4:83:e7:00:00:01" },
      { name: "en0", mac: "a4:83:e7:00:00:02" },
    ],
  });

  it("is known by its platform UUID and its first built-in interface", () => {
    const text = '  |   "IOPlatformUUID" = "0A1B2C3D-0000-1111-2222-333344445555"\n  | "model" = <"Mac">';
    expect(readHostFacts(mac(() => text))).toEqual({
      hostId: "0a1b2c3d-0000-1111-2222-333344445555",
      mac: "a4:83:e7:00:00:02",
      hostIdUnreadable: false,
    });
  });

  it("that does not say its UUID has one all the same", () => {
    expect(readHostFacts(mac(denied))).toMatchObject({ hostId: undefined, hostIdUnreadable: true });
    expect(readHostFacts(mac(() => "nothing"))).toMatchObject({ hostId: undefined, hostIdUnreadable: true });
  });
});

describe("this machine", () => {
  it("says the same twice", () => {
    expect(readHostFacts()).toEqual(readHostFacts());
  });

  it("of another system is known by its address alone", () => {
    const listInterfaces = () => [{ name: "em0", mac: "a4:83:e7:00:00:04" }];
    const facts = readHostFacts({ ...linux({ "/etc/machine-id": id }, { listInterfaces }), platform: "freebsd" });
    expect(facts).toEqual({ hostId: undefined, mac: "a4:83:e7:00:00:04", hostIdUnreadable: false });
  });
});

import { hash } from "node:crypto";
import { describe, expect, it } from "vitest";
import {
  chooseRecord,
  chooseStableMac,
  compareHosts,
  type HostFacts,
  type HostVerdict,
  recordHost,
} from "./host-fingerprint.ts";

const none: HostFacts = { hostId: undefined, mac: undefined, hostIdUnreadable: false };
const host = (given: Partial<HostFacts>): HostFacts => ({ ...none, ...given });

describe("a host's fingerprint", () => {
  it("is the SHA-256 of its id and its first stable address, and the file names neither", () => {
    const mac = "a4:83:e7:00:00:01";
    expect(recordHost(host({ hostId: "abc", mac }))).toEqual({
      fingerprint: hash("sha256", `abc${mac}`),
      hostIdSha256: hash("sha256", "abc"),
      macSha256: hash("sha256", mac),
    });
  });

  it("holds what there is", () => {
    expect(recordHost(host({ hostId: "abc" })).macSha256).toBeUndefined();
    expect(recordHost(host({ mac: "m" })).hostIdSha256).toBeUndefined();
    expect(recordHost(none).fingerprint).toBeUndefined();
  });
});

describe("the same host or another", () => {
  const cases: [string, Partial<HostFacts>, Partial<HostFacts>, HostVerdict][] = [
    ["the same id", { hostId: "a", mac: "m" }, { hostId: "a", mac: "m" }, "same"],
    ["the same id with another address, as a laptop makes it up", { hostId: "a", mac: "m" }, { hostId: "a" }, "same"],
    ["the same id and a new address", { hostId: "a", mac: "m" }, { hostId: "a", mac: "n" }, "same"],
    ["another id, though the address is the same", { hostId: "a", mac: "m" }, { hostId: "b", mac: "m" }, "changed"],
    ["another id and another address", { hostId: "a", mac: "m" }, { hostId: "b", mac: "n" }, "changed"],
    ["the id is gone, and the address is the same", { hostId: "a", mac: "m" }, { mac: "m" }, "same"],
    ["the id is gone, and the address is another", { hostId: "a", mac: "m" }, { mac: "n" }, "changed"],
    ["the id is gone, and so is the address", { hostId: "a", mac: "m" }, {}, "changed"],
    ["the id is gone, and there never was an address", { hostId: "a" }, { mac: "m" }, "changed"],
    ["the id cannot be read", { hostId: "a" }, { hostIdUnreadable: true }, "unknown"],
    [
      "the id cannot be read, and the address is another",
      { hostId: "a", mac: "m" },
      { mac: "n", hostIdUnreadable: true },
      "unknown",
    ],
    [
      "the id cannot be read, and the address is the same",
      { hostId: "a", mac: "m" },
      { mac: "m", hostIdUnreadable: true },
      "same",
    ],
    ["without an id, the same address", { mac: "m" }, { mac: "m" }, "same"],
    ["without an id, another address", { mac: "m" }, { mac: "n" }, "changed"],
    ["an id has come, and the address is the same", { mac: "m" }, { hostId: "a", mac: "m" }, "same"],
    ["an id has come, and the address is another", { mac: "m" }, { hostId: "a", mac: "n" }, "changed"],
    ["without an id, and the address is gone", { mac: "m" }, {}, "unknown"],
    ["an id has come, and the address is gone", { mac: "m" }, { hostId: "a" }, "unknown"],
    ["nothing was known, and nothing is", {}, {}, "unknown"],
    ["nothing was known, and now there is an id", {}, { hostId: "a", mac: "m" }, "unknown"],
  ];
  it.each(cases)("%s", (_, stored, current, verdict) => {
    expect(compareHosts(recordHost(host(stored)), host(current))).toBe(verdict);
  });
});

describe("what is kept after a start", () => {
  const after = (stored: Partial<HostFacts>, current: Partial<HostFacts>) =>
    chooseRecord(recordHost(host(stored)), host(current));
  const record = (facts: Partial<HostFacts>) => recordHost(host(facts));

  it("follows the same host to a new address, and to an id that it did not have", () => {
    expect(after({ hostId: "a", mac: "m" }, { hostId: "a", mac: "n" })).toEqual(record({ hostId: "a", mac: "n" }));
    expect(after({ mac: "m" }, { hostId: "a", mac: "m" })).toEqual(record({ hostId: "a", mac: "m" }));
    expect(after({}, { hostId: "a" })).toEqual(record({ hostId: "a" }));
  });

  it("never forgets what was known because it cannot be seen just now", () => {
    expect(after({ hostId: "a", mac: "m" }, { hostId: "a" })).toEqual(record({ hostId: "a", mac: "m" }));
    expect(after({ hostId: "a", mac: "m" }, { mac: "m" })).toEqual(record({ hostId: "a", mac: "m" }));
    expect(after({ hostId: "a" }, { hostIdUnreadable: true })).toEqual(record({ hostId: "a" }));
    expect(after({ mac: "m" }, { hostId: "a" })).toEqual(record({ mac: "m" }));
  });

  it("never becomes another host by itself", () => {
    expect(after({ hostId: "a", mac: "m" }, { hostId: "b", mac: "m" })).toEqual(record({ hostId: "a", mac: "m" }));
  });
});

describe("the first stable address", () => {
  const card = (name: string, mac: string, isVirtual = false) => ({ name, mac, isVirtual });

  it("is that of the first interface by name, whatever the order of the list, in lower case", () => {
    const cards = [card("wlan0", "a4:83:e7:00:00:02"), card("eth0", "A4:83:E7:00:00:01")];
    expect(chooseStableMac(cards)).toBe("a4:83:e7:00:00:01");
    expect(chooseStableMac(cards.toReversed())).toBe("a4:83:e7:00:00:01");
  });

  it.each([
    ["one that was assigned locally", card("eth0", "02:42:ac:11:00:02")],
    ["one of a group", card("eth0", "01:00:5e:00:00:01")],
    ["none at all", card("eth0", "00:00:00:00:00:00")],
    ["one that is no Ethernet address", card("ib0", "80:00:00:48:fe:80:00:00")],
    ["one that the system calls virtual", card("eth0", "a4:83:e7:00:00:01", true)],
    ...["docker0", "veth12ab", "br-1f", "virbr0", "tun0", "tap0", "utun3", "wg0", "vmnet8", "cni0", "awdl0", "lo"].map(
      (name): [string, ReturnType<typeof card>] => [`that of ${name}`, card(name, "a4:83:e7:00:00:01")],
    ),
  ])("is never %s", (_, unstable) => {
    expect(chooseStableMac([unstable])).toBeUndefined();
    const stable = card("zz0", "a4:83:e7:00:00:09");
    expect(chooseStableMac([unstable, stable])).toBe(stable.mac);
  });
});

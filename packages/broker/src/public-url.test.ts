// What a broker calls itself to those on other hosts.
import { decodeInvite } from "@claudemesh/protocol/wire/invite";
import { expect, test } from "vitest";
import { createTestMesh, startTestBroker } from "../../../tests/support/broker-harness.ts";
import { readBrokerConfig } from "./config.ts";
import { isUnspecified, reachableAddresses, reachableHost } from "./public-url.ts";

const loopback = { family: "IPv4", address: "127.0.0.1", internal: true };
const linkLocal = { family: "IPv6", address: "fe80::1", internal: false };
const inner = { family: "IPv4", address: "192.168.7.2", internal: false };
const outer = { family: "IPv6", address: "2001:db8::7", internal: false };

test.each(["0.0.0.0", "::", "[::]", "[0:0:0:0:0:0:0:0]", "::0"])("%s is no address of a host", (host) => {
  expect(isUnspecified(host)).toBe(true);
});

test.each(["127.0.0.1", "::1", "[::1]", "10.0.0.0", "mesh.example.org", "2001:db8::"])("%s is one", (host) => {
  expect(isUnspecified(host)).toBe(false);
});

test("the reachable address is one of another network than the loopback, of real networks and IPv4 first", () => {
  const lo = [loopback];
  const docker0 = [{ family: "IPv4", address: "172.17.0.1", internal: false }];
  const eth0 = [linkLocal, outer, { family: "IPv4", address: "203.0.113.9", internal: false }];
  expect(reachableAddresses({ lo, docker0, eth0, wlan0: [inner] })).toEqual([
    "192.168.7.2",
    "203.0.113.9",
    "2001:db8::7",
    "172.17.0.1",
  ]);
  expect(reachableHost({ lo, eth0: [linkLocal, outer] })).toBe("[2001:db8::7]");
  expect(reachableHost({ lo, eth0: [linkLocal] })).toBe("127.0.0.1");
});

test.each([
  ["0.0.0.0:0", undefined],
  ["[::]:0", undefined],
  ["0.0.0.0:0", "https://mesh.example.org"],
])("an invite of a broker that listens on %s leads to a host (public url: %s)", async (listen, publicUrl) => {
  const flags = { listen, "plain-http": "true", ...(publicUrl === undefined ? {} : { "public-url": publicUrl }) };
  const broker = await startTestBroker({ flags });
  const port = new URL(broker.url).port;
  const local = listen.startsWith("[") ? `http://[::1]:${port}` : `http://127.0.0.1:${port}`;
  const alice = await createTestMesh({ ...broker, url: local });
  const peer = await alice.connect("client");
  const { body } = await peer.request("invite.create");
  const invite = decodeInvite(String(body.invite));
  expect(invite.broker).toBe(broker.publicUrl);
  expect(isUnspecified(new URL(invite.broker).hostname)).toBe(false);
  expect(invite.broker).toBe(publicUrl ?? `http://${reachableHost()}:${port}`);
});

test("no address of every host is taken for a public one", () => {
  for (const url of ["http://0.0.0.0:7600", "https://[::]"]) {
    expect(() => readBrokerConfig({ "public-url": url }, {}, undefined)).toThrow(/--public-url/);
  }
});

import { describe, expect, test } from "vitest";
import { isPlainlyPrivate, isPublicAddress } from "./address-guard.ts";

describe("an address that a webhook may go to", () => {
  test.for(["8.8.8.8", "93.184.216.34", "1.1.1.1", "172.32.0.1", "2606:4700:4700::1111", "2a00:1450::1"])(
    "%s is public",
    (address) => {
      expect(isPublicAddress(address)).toBe(true);
    },
  );

  test.for([
    "127.0.0.1",
    "127.255.255.254",
    "0.0.0.0",
    "10.0.0.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "169.254.169.254",
    "168.63.129.16",
    "100.64.0.1",
    "100.100.100.200",
    "192.0.0.192",
    "198.18.0.1",
    "224.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::ffff:127.0.0.1",
    "::ffff:8.8.8.8",
    "::ffff:7f00:1",
    "64:ff9b::7f00:1",
    "fe80::1",
    "fec0::1",
    "fc00::1",
    "fd00:ec2::254",
    "ff02::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "2001::1",
    "localhost",
    "",
    "300.1.1.1",
  ])("%s is not", (address) => {
    expect(isPublicAddress(address)).toBe(false);
  });

  test.for([
    "http://127.0.0.1/",
    "http://127.1/",
    "http://0x7f000001/",
    "http://2130706433/",
    "http://0177.0.0.1/",
    "http://[::1]:8080/x",
    "http://[::ffff:127.0.0.1]/",
    "http://localhost:3000/",
    "http://LOCALHOST./",
    "http://api.localhost/",
    "https://169.254.169.254/latest/meta-data/",
  ])("%s is seen to be private without looking anything up", (url) => {
    expect(isPlainlyPrivate(new URL(url))).toBe(true);
  });

  test.for(["http://example.org/", "https://8.8.8.8/", "https://localhost.example.org/"])("%s is not", (url) => {
    expect(isPlainlyPrivate(new URL(url))).toBe(false);
  });
});

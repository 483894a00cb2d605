// compose.yaml names only what exists: settings that a broker has, images that need no host of their own.
import { readFileSync } from "node:fs";
import { brokerOptions } from "@claudemesh/broker/config";
import { expect, test } from "vitest";

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

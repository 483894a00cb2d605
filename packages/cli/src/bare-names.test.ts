import { expect, test } from "vitest";
import { queueName, topicName } from "./bare-names.ts";

test("a topic may be named as one sends to it", () => {
  expect(["builds", "#builds", "topic:builds"].map(topicName)).toEqual(["builds", "builds", "builds"]);
});

test("so may a queue, and nothing else is taken away", () => {
  expect(["jobs", "queue:jobs"].map(queueName)).toEqual(["jobs", "jobs"]);
  expect([topicName("##builds"), topicName("@self"), queueName("#jobs")]).toEqual(["#builds", "@self", "#jobs"]);
});

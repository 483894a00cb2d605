// The same on PostgreSQL and Redis: one member asks for as much as it may, and the broker goes on answering the others.
import { afterAll, beforeAll, describe } from "vitest";
import type { BrokerProcess } from "./support/broker-process.ts";
import { Brokers, findServers } from "./support/brokers.ts";
import { describeBusyMember } from "./support/busy-member.ts";

const servers = await findServers("busy_member");
afterAll(() => servers.stop());

describe.skipIf(!servers.found)("side by side", () => {
  const brokers = new Brokers(servers.urls);
  let broker: BrokerProcess | undefined;
  beforeAll(async () => {
    broker = await brokers.add();
  });
  afterAll(() => brokers.end());

  describeBusyMember("PostgreSQL", () => {
    if (broker === undefined) throw new Error("the broker has not started");
    return { broker, adminToken: brokers.adminToken };
  });
});

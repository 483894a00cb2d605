// The broker as an area of the kit: what it needs to be told, and all that is tried.
import { defineArea } from "../../frame/scenario.ts";
import { acceptScenarios } from "./accepting.ts";
import { callScenarios } from "./calls.ts";
import { deliveryScenarios } from "./delivery.ts";
import { frameScenarios } from "./frames.ts";
import { identityScenarios } from "./identity.ts";
import { lostAnswerScenarios } from "./lost-answers.ts";
import { negotiationScenarios } from "./negotiation.ts";
import { orderingScenarios } from "./ordering.ts";
import { ownershipScenarios } from "./ownership.ts";
import { queueScenarios } from "./queues.ts";
import { sealingScenarios } from "./sealing.ts";
import { BrokerWorld } from "./world.ts";

export const brokerArea = defineArea<BrokerWorld>({
  name: "broker",
  summary: "a broker over HTTP and WebSocket, with members whose keys the kit makes",
  options: [
    { flag: "url", value: "<url>", help: "where it serves: http://host:port (needed)" },
    {
      flag: "admin-token",
      value: "<token>",
      help: "the broker's admin token: the kit makes a mesh of its own",
      secretEnv: "CLAUDEMESH_ADMIN_TOKEN",
    },
    { flag: "mesh", value: "<name>", help: "without an admin token: a mesh that exists, made for tests" },
    {
      flag: "owner-token",
      value: "<token>",
      help: "with --mesh: a bearer token of an owner, to invite the kit's members",
      secretEnv: "CLAUDEMESH_OWNER_TOKEN",
    },
    {
      flag: "invite",
      value: "<invite>",
      help: "with --mesh and no owner: single-use invites, three at least; what needs an owner is skipped",
      repeatable: true,
    },
    {
      flag: "budget",
      value: "<n>",
      help: "messages that the rate limit allows in a window; the kit spends them in a mesh of its own",
    },
  ],
  scenarios: [
    ...lostAnswerScenarios,
    ...identityScenarios,
    ...ownershipScenarios,
    ...acceptScenarios,
    ...orderingScenarios,
    ...deliveryScenarios,
    ...queueScenarios,
    ...sealingScenarios,
    ...negotiationScenarios,
    ...callScenarios,
    ...frameScenarios,
  ],
  open: (options) => BrokerWorld.open(options),
  tidy: (world) => world.tidy(),
  close: (world) => world.close(),
});

// The broker as an area of the kit: its options and all its scenarios.
import { defineArea } from "../../frame/scenario.ts";
import { budgetOption, meshOptions } from "../mesh-options.ts";
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
  options: [...meshOptions, budgetOption],
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

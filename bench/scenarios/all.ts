// Every scenario, in the order of the page.
import { acceptScenario } from "./accept.ts";
import { brokerAcceptScenario } from "./broker-accept.ts";
import { brokerPeersScenario } from "./broker-peers.ts";
import { brokerQueuesScenario } from "./broker-queues.ts";
import { brokerReachScenario } from "./broker-reach.ts";
import { brokerRetryScenario } from "./broker-retry.ts";
import { drainScenario } from "./drain.ts";
import { footprintScenario } from "./footprint.ts";
import { growthScenario } from "./growth.ts";
import { millionScenario } from "./million.ts";
import { registrarScenario } from "./registrar.ts";
import { registrarMillionScenario } from "./registrar-million.ts";
import type { Scenario } from "./scenario.ts";
import { spacesScenario } from "./spaces.ts";
import { spacesReplicaScenario } from "./spaces-replica.ts";

export const scenarios: readonly Scenario[] = [
  acceptScenario,
  drainScenario,
  footprintScenario,
  millionScenario,
  brokerAcceptScenario,
  brokerPeersScenario,
  brokerQueuesScenario,
  brokerRetryScenario,
  growthScenario,
  brokerReachScenario,
  registrarScenario,
  registrarMillionScenario,
  spacesScenario,
  spacesReplicaScenario,
];

// The registrar and `once` as an area of the kit, over a broker's HTTP and WebSocket API.
import { defineArea } from "../../frame/scenario.ts";
import { BrokerWorld } from "../broker/world.ts";
import { meshOptions } from "../mesh-options.ts";
import { approvalScenarios } from "./approvals.ts";
import { registrarCallScenarios } from "./calls.ts";
import { checkScenarios } from "./checks.ts";
import { identityScenarios } from "./identities.ts";
import { registrarLostAnswerScenarios } from "./lost-answers.ts";
import { onceScenarios } from "./once.ts";
import { replayScenarios } from "./replays.ts";
import { surfaceScenarios } from "./surface.ts";

export const registrarArea = defineArea<BrokerWorld>({
  name: "registrar",
  summary: "the registrar of a broker and `once`; approvals are signed by the owner of a mesh that the kit makes",
  options: [
    ...meshOptions,
    {
      flag: "refused-target",
      value: "<text>",
      help: "a target whose registrations the broker's verifier refuses, to see what follows; skipped without",
    },
  ],
  scenarios: [
    ...registrarLostAnswerScenarios,
    ...identityScenarios,
    ...approvalScenarios,
    ...registrarCallScenarios,
    ...checkScenarios,
    ...replayScenarios,
    ...surfaceScenarios,
    ...onceScenarios,
  ],
  open: (options) => BrokerWorld.open(options),
  tidy: (world) => world.tidy(),
  close: (world) => world.close(),
});

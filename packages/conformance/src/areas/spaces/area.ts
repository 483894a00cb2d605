// Spaces as an area of the kit: a broker's shared state, over its HTTP and WebSocket API.
import { defineArea } from "../../frame/scenario.ts";
import { BrokerWorld } from "../broker/world.ts";
import { budgetOption, meshOptions } from "../mesh-options.ts";
import { branchScenarios } from "./branches.ts";
import { spaceCallScenarios } from "./calls.ts";
import { commitScenarios } from "./commits.ts";
import { spaceLostAnswerScenarios } from "./lost-answers.ts";
import { mergeScenarios } from "./merges.ts";
import { readingScenarios } from "./reading.ts";
import { resumeScenarios } from "./resuming.ts";
import { sendScenarios } from "./sends.ts";
import { sessionScenarios } from "./sessions.ts";
import { signingScenarios } from "./signing.ts";
import { validationScenarios } from "./validation.ts";
import { valueScenarios } from "./values.ts";
import { watchScenarios } from "./watching.ts";

export const spacesArea = defineArea<BrokerWorld>({
  name: "spaces",
  summary: "the spaces of a broker: sessions, commits, branches, history and live updates",
  options: [...meshOptions, budgetOption],
  scenarios: [
    ...spaceLostAnswerScenarios,
    ...valueScenarios,
    ...sessionScenarios,
    ...commitScenarios,
    ...validationScenarios,
    ...sendScenarios,
    ...readingScenarios,
    ...branchScenarios,
    ...mergeScenarios,
    ...watchScenarios,
    ...resumeScenarios,
    ...signingScenarios,
    ...spaceCallScenarios,
  ],
  open: (options) => BrokerWorld.open(options),
  tidy: (world) => world.tidy(),
  close: (world) => world.close(),
});

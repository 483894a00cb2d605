// The daemon as an area of the kit: its options and all its scenarios.
import { defineArea } from "../../frame/scenario.ts";
import { arrivalScenarios } from "./arrivals.ts";
import { guardScenarios } from "./guards.ts";
import { identityScenarios } from "./identity.ts";
import { lostAnswerScenarios } from "./lost-answers.ts";
import { outboxScenarios } from "./outbox.ts";
import { routeScenarios } from "./routes.ts";
import { sendingScenarios } from "./sending.ts";
import { negotiationScenarios, wireScenarios } from "./wire.ts";
import { DaemonWorld } from "./world.ts";

export const daemonArea = defineArea<DaemonWorld>({
  name: "daemon",
  summary: "a daemon's local API, and, where the kit stands between, what it says to its broker",
  options: [
    { flag: "socket", value: "<path>", help: "its Unix socket" },
    { flag: "url", value: "<url>", help: "its loopback address, http://127.0.0.1:port; the guards of 2.2 need it" },
    { flag: "token", value: "<token>", help: "with --url: the local token", secretEnv: "CLAUDEMESH_LOCAL_TOKEN" },
    { flag: "broker", value: "<url>", help: "where its broker really is; for --between and --peer-token" },
    {
      flag: "between",
      value: "<host:port>",
      help: "listen here, pass on to --broker: the daemon's broker address must be this one",
    },
    {
      flag: "peer-token",
      value: "<token>",
      help: "with --broker: a bearer token of another member of its mesh, for topics and queues",
      secretEnv: "CLAUDEMESH_PEER_TOKEN",
    },
    {
      flag: "broker-key",
      value: "<hex>",
      help: "with --between: the secret half of the broker's key, to announce other features in its name",
      secretEnv: "CLAUDEMESH_BROKER_KEY",
    },
    {
      flag: "restart",
      value: "<command>",
      help: "starts the daemon again and returns; it may end over a broken negotiation",
    },
  ],
  scenarios: [
    ...lostAnswerScenarios,
    ...identityScenarios,
    ...sendingScenarios,
    ...outboxScenarios,
    ...arrivalScenarios,
    ...wireScenarios,
    ...guardScenarios,
    ...routeScenarios,
    ...negotiationScenarios,
  ],
  open: (options) => DaemonWorld.open(options),
  tidy: (world) => world.tidy(),
  close: (world) => world.close(),
});

// The conformance kit must catch a daemon that breaks one rule, by a scenario of the section that has the rule.
import { afterAll, beforeAll } from "vitest";
import { startBreachingProxy } from "./support/breaching-proxy.ts";
import { describeCatching } from "./support/conformance-catches.ts";
import {
  type BrokerTarget,
  type DaemonTarget,
  findFreePort,
  startBrokerTarget,
  startDaemonTarget,
} from "./support/conformance-targets.ts";
import { wrongDaemons } from "./support/wrong-daemons.ts";

let broker: BrokerTarget;
let daemon: DaemonTarget;
/** Where the daemon looks for its broker, and where the kit passes on to the real one. */
let linkPort: number;
let kitPort: number;

beforeAll(async () => {
  broker = await startBrokerTarget();
  linkPort = await findFreePort();
  kitPort = await findFreePort();
  daemon = await startDaemonTarget(broker, `ws://127.0.0.1:${linkPort}`);
});

afterAll(async () => {
  await daemon.stop();
  await broker.stop();
});

const wrong = wrongDaemons(() => daemon.token());

describeCatching("daemon", wrong, async (breach) => {
  const front = await startBreachingProxy(() => daemon.url(), breach);
  const link = await startBreachingProxy(() => `http://127.0.0.1:${kitPort}`, breach, linkPort);
  const given = {
    url: [front.url],
    token: [daemon.token()],
    broker: [broker.url],
    between: [`127.0.0.1:${kitPort}`],
    "broker-key": [broker.keySeed()],
    "peer-token": [daemon.peerToken],
    restart: ["true"],
  };
  const stop = async () => {
    await link.stop();
    await front.stop();
  };
  return { given, stop };
});

// A broker in a process of its own, for tests that kill it: the path of its store is the first argument, fault points
// come from the environment, and the address is printed once it serves.
import process from "node:process";
import { readBrokerConfig } from "../config.ts";
import { startBroker } from "../start.ts";

const flags = { listen: "127.0.0.1:0", store: `sqlite:${process.argv[2]}`, "log-level": "silent" };
const broker = await startBroker(readBrokerConfig(flags, process.env, undefined));
process.stdout.write(`${broker.url}\n`);

// A daemon in a process of its own, to be killed. Run with a home and a scenario as arguments; prints "ready" when it
// serves. The broker is a scripted link that comes up and stays silent, or pushes one message.
import process from "node:process";
import type { LinkOptions } from "@claudemesh/client/internal/link-contract";
import { startDaemon } from "../start.ts";
import { ScriptedLink } from "./scripted-link.ts";

const [home = "", scenario = "offline", umask] = process.argv.slice(2);
if (umask !== undefined) process.umask(Number.parseInt(umask, 8));
const link = new ScriptedLink();
const daemon = await startDaemon({
  home,
  mesh: "acme",
  env: process.env,
  overrides: { ipc: { tcp_enabled: true } },
  connect: (options: LinkOptions) => {
    link.options = options;
    return link;
  },
});
process.stdout.write("ready\n");
process.once("SIGTERM", () => void daemon.stop());
if (scenario === "online") link.goOnline();
if (scenario === "push") {
  link.goOnline();
  link.options?.onPush({
    type: "message",
    history_id: 1,
    broker_message_id: "b-1",
    client_message_id: "c-1",
    destination: { kind: "topic", ref: "general" },
    sender_pubkey: "ab".repeat(32),
    envelope_version: "1",
    body: "hello",
    meta: null,
    priority: "next",
    reply_to_id: null,
    accepted_at: 1,
  });
}

// `claudemesh send`: through the daemon. Only if connecting to it fails does the message go to the broker directly,
// and then the command says so. Once a request is written to the daemon there is no other way: it may have accepted.
import { readFileSync } from "node:fs";
import { DaemonUnreachable, type SendBody } from "@claudemesh/client/daemon";
import type { MeshPaths } from "@claudemesh/client/home";
import { parseStrictJsonText } from "@claudemesh/protocol/json";
import { limits } from "@claudemesh/protocol/messages/limits";
import type { SendRequest } from "@claudemesh/protocol/messages/send-request";
import { type Command, InvalidArgumentError, Option } from "commander";
import { examples, type Outcome, run, withMesh } from "../command.ts";
import { withDaemon } from "../daemon-access.ts";
import { expectBody } from "../exit-codes.ts";
import { asMember } from "../member.ts";
import { pathsFor, type Shell } from "../shell.ts";

type Options = {
  mesh?: string;
  json?: boolean;
  id?: string;
  priority?: "now" | "next" | "low";
  replyTo?: string;
  meta?: NonNullable<SendRequest["meta"]>;
};

export function define(command: Command, shell: Shell): void {
  withMesh(command)
    .argument("<to>", "@name, @self, #topic, dm:<public key> or queue:<id>")
    .argument("<message>", "the text, or - to read it from standard input")
    .option("--id <client-message-id>", "the message's identity; sending again with the same id is safe")
    .addOption(new Option("--priority <priority>", "what receivers see").choices(["now", "next", "low"]))
    .option("--reply-to <broker-message-id>", "the message that this one answers")
    .option("--meta <json>", "a JSON object that travels in clear beside the message", parseMeta)
    .action((to: string, message: string, options: Options) =>
      run(shell, options, () => send(shell, options, requestOf(to, message, options))),
    );
  examples(
    command,
    'claudemesh send @self "hello"',
    'claudemesh send "#builds" "build 42 is green" --id build-42',
    "git log -1 | claudemesh send @reviewer -",
  );
}

function requestOf(to: string, message: string, options: Options): SendRequest {
  const { id, priority, replyTo, meta } = options;
  return {
    to,
    message: message === "-" ? readFileSync(0, "utf8") : message,
    ...(id === undefined ? {} : { client_message_id: id }),
    ...(priority === undefined ? {} : { priority }),
    ...(replyTo === undefined ? {} : { reply_to_id: replyTo }),
    ...(meta === undefined ? {} : { meta }),
  };
}

async function send(shell: Shell, options: Options, request: SendRequest): Promise<Outcome> {
  const paths = pathsFor(shell, options);
  try {
    const sent = await withDaemon(paths, async (daemon) => expectBody(await daemon.send(request)));
    return { value: sent, text: describe(sent) };
  } catch (error) {
    if (!(error instanceof DaemonUnreachable) || error.sent) throw error;
    return sendDirectly(shell, paths, request);
  }
}

/** The broker's answer is the only record of such a send: there is no outbox behind it. */
async function sendDirectly(shell: Shell, paths: MeshPaths, request: SendRequest): Promise<Outcome> {
  shell.err("No daemon is running here: sending to the broker directly, without an outbox.");
  const { buildDirectSend } = await import("../direct-send.ts");
  const stored = (await asMember(shell, paths, async (call) => {
    const input = await buildDirectSend(paths, request, call);
    return call("send", input);
  })) as { client_message_id: string; broker_message_id: string; history_id: number; duplicate: boolean };
  const again = stored.duplicate ? " (it was there already)" : "";
  return {
    value: { ...stored, status: "stored", via: "broker" },
    text: `${stored.client_message_id}  stored${again}`,
  };
}

function describe(sent: SendBody): string {
  const again = sent.duplicate ? " (asked before)" : "";
  return `${sent.client_message_id}  ${sent.status}${again}`;
}

function parseMeta(text: string): NonNullable<SendRequest["meta"]> {
  let value: unknown;
  try {
    value = parseStrictJsonText(text, { maxDepth: limits.jsonDepth });
  } catch (error) {
    throw new InvalidArgumentError(error instanceof Error ? error.message : String(error));
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new InvalidArgumentError("It takes a JSON object.");
  }
  return value as NonNullable<SendRequest["meta"]>;
}

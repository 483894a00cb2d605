// `claudemesh send`: through the daemon. Only if connecting to it fails does the message go to the broker directly, and
// then the command says so. Once a request is written to the daemon there is no other way: it may have accepted. What
// only some sends need is imported where they need it, because this command is run in loops.

import { isUtf8 } from "node:buffer";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { DaemonUnreachable, type SendBody, type WaitStage } from "@claudemesh/client/daemon";
import type { MeshPaths } from "@claudemesh/client/home";
import { MeshError } from "@claudemesh/protocol/errors";
import { createUlidGenerator } from "@claudemesh/protocol/ids";
import type { IdentifiedSend, SendRequest } from "@claudemesh/protocol/messages/send-request";
import { type Command, Option } from "commander";
import { type Commands, examples, type Outcome, run, withMesh, withTimes } from "../command.ts";
import { callDaemon, tellAboutDaemon } from "../daemon/daemon-access.ts";
import { expectBody, Refused } from "../exit-codes.ts";
import { hint } from "../hints.ts";
import { parseWait } from "../input/arguments.ts";
import { describeWay } from "../output/send-way.ts";
import {
  parseStage,
  type WaitBody,
  type Waiting,
  waitComplaint,
  waitExitCodes,
  waitFor,
  waitTimeoutMs,
} from "../send/send-wait.ts";
import { pathsFor, type Shell } from "../shell.ts";

export const commands = {
  send: defineSend,
} satisfies Commands;

type Options = {
  batch?: string;
  mesh?: string;
  json?: boolean;
  id?: string;
  priority?: "now" | "next" | "low";
  replyTo?: string;
  meta?: string;
  wait?: WaitStage;
  timeout?: number;
};

type Meta = NonNullable<SendRequest["meta"]>;

/**
 * Through the daemon. Only if connecting to it fails does the message go to the broker directly, and then the command
 * says so. Once a request is written to the daemon there is no other way: it may have accepted. What only some sends
 * need is imported where they need it, because this command is run in loops.
 */
function defineSend(command: Command, shell: Shell): void {
  withTimes(withMesh(command))
    .usage("[options] <to> <message>\n       claudemesh send [options] --batch <path>")
    .argument("[to]", "@name, @self, #topic, dm:<public key> or queue:<id>")
    .argument("[message]", "the text, or - to read it from standard input")
    .option(
      "--id <client-message-id>",
      "the message's identity; sending again with the same id is safe. With --batch: line n without an id is <id>-n",
    )
    .addOption(
      new Option("--priority <priority>", "what waits on this host leaves in this order, and receivers see it").choices(
        ["now", "next", "low"],
      ),
    )
    .option("--reply-to <broker-message-id>", "the message that this one answers")
    .option(
      "--meta <json>",
      "a JSON object that travels with the message: sealed to a member, in clear to a topic or queue",
    )
    .addOption(
      new Option("--wait <stage>", "wait until it is so far; exit code 7: not yet, 1: it never will be")
        .choices(["stored", "delivered"])
        .argParser(parseStage),
    )
    .option("--timeout <time>", "how long --wait waits, as 30s or 5m (default: 60s)", parseWait)
    .addOption(
      new Option(
        "--batch <path>",
        'many messages through the daemon, a {"to", "message", "client_message_id", …} per line; - is standard input',
      ).conflicts(["priority", "replyTo", "meta"]),
    )
    .action(async (to: string | undefined, message: string | undefined, options: Options) => {
      const { batch, id, json } = options;
      const waiting = waitingOf(command, options);
      if (batch !== undefined) {
        if (to !== undefined) command.error("error: with --batch the lines say where each message goes");
        const { sendBatch } = await import("../send/send-batch.ts");
        await run(shell, options, () => sendBatch(shell, pathsFor(shell, options), { batch, id, json, waiting }));
        return;
      }
      if (to === undefined || message === undefined) {
        command.error(`error: missing required argument '${to === undefined ? "to" : "message"}'`);
      }
      const meta = options.meta === undefined ? undefined : await parseMeta(command, options.meta);
      await run(shell, options, () => send(shell, options, requestOf(to, message, options, meta), waiting));
    });
  examples(
    command,
    'claudemesh send @self "hello"',
    'claudemesh send "#builds" "build 42 is green" --id build-42',
    'claudemesh send @bob "please look" --wait delivered --timeout 30s',
    "git log -1 | claudemesh send @reviewer -",
    "claudemesh send --batch messages.ndjson --id nightly-7",
  );
}

function requestOf(to: string, message: string, options: Options, meta: Meta | undefined): IdentifiedSend {
  const { id, priority, replyTo } = options;
  return {
    to,
    ...(message === "-" ? readStandardInput() : { message }),
    client_message_id: id ?? createUlidGenerator({ nowMs: Date.now, randomBytes })(),
    ...(priority === undefined ? {} : { priority }),
    ...(replyTo === undefined ? {} : { reply_to_id: replyTo }),
    ...(meta === undefined ? {} : { meta }),
  };
}

/** Bytes that are no text travel as they are: decoding them would change the message without a word. */
function readStandardInput(): Pick<SendRequest, "message" | "message_base64"> {
  const bytes = readFileSync(0);
  return isUtf8(bytes) ? { message: bytes.toString("utf8") } : { message_base64: bytes.toString("base64") };
}

function waitingOf(command: Command, { wait: stage, timeout }: Options): Waiting | undefined {
  if (stage !== undefined) return { stage, timeoutMs: timeout ?? waitTimeoutMs };
  if (timeout !== undefined) command.error("error: --timeout says how long --wait waits: give both");
  return undefined;
}

async function send(
  shell: Shell,
  options: Options,
  request: IdentifiedSend,
  waiting: Waiting | undefined,
): Promise<Outcome> {
  const paths = pathsFor(shell, options);
  let sent: SendBody;
  try {
    sent = await callDaemon(paths, async (daemon) => expectBody(await daemon.send(request)));
  } catch (error) {
    // A send that succeeds need not know which version took it, and asking first would make each one slower.
    if (error instanceof Refused && error.body.error !== "membership_ended") await tellAboutDaemon(shell, paths);
    if (!(error instanceof DaemonUnreachable)) throw error;
    if (error.sent) throw unanswered("daemon_unreachable", "The daemon", request, error);
    return sendDirectly(shell, paths, request, waiting);
  }
  return waiting === undefined ? { value: sent, text: describe(sent) } : waitUntil(shell, paths, sent, waiting);
}

/** The message is taken by now, so that what the waiting comes to is shown beside its ids. */
async function waitUntil(shell: Shell, paths: MeshPaths, sent: SendBody, waiting: Waiting): Promise<Outcome> {
  const wait = await callDaemon(paths, (daemon) => waitFor(daemon, sent.outbox_id, waiting));
  process.exitCode = waitExitCodes[wait.outcome];
  const complaint = waitComplaint(sent.client_message_id, wait, waiting.timeoutMs);
  if (complaint !== undefined) shell.err(hint(shell, `claudemesh: ${complaint}`));
  // What stood in its way does no more once it has come through; that no member reads it is still so.
  const { subscribers } = sent;
  const lasting = subscribers === undefined ? {} : { subscribers };
  const way = describeWay(wait.outcome === "reached" ? lasting : sent);
  const text = [`${sent.client_message_id}  ${wait.state}`, ...way];
  return { value: { ...sent, wait }, text: text.join("\n") };
}

/** The broker's answer is the only record of such a send: there is no outbox behind it. */
async function sendDirectly(
  shell: Shell,
  paths: MeshPaths,
  request: IdentifiedSend,
  waiting: Waiting | undefined,
): Promise<Outcome> {
  shell.err("No daemon is running here: sending to the broker directly, without an outbox.");
  const [{ buildDirectSend, refusedDirectly }, { followDirect }, { asMember }] = await Promise.all([
    import("../send/direct-send.ts"),
    import("../send/direct-delivery.ts"),
    import("../mesh/member.ts"),
  ]);
  const { stored, delivery } = await asMember(shell, paths, async (call) => {
    const input = await buildDirectSend(paths, request, call);
    const answer = (await call("send", input).catch((error: unknown) => {
      const isOpen = error instanceof MeshError && error.code === "broker_unreachable" && error.details.sent === true;
      throw isOpen ? unanswered("broker_unreachable", "The broker", request, error) : refusedDirectly(error, input);
    })) as DirectAnswer;
    return { stored: answer, delivery: await followDirect(call, answer.broker_message_id, waiting) };
  });
  const { broker_message_id: id, client_message_id, duplicate } = stored;
  const { outcome, state, hasRecipients } = delivery;
  const readers = hasRecipients ? {} : ({ subscribers: 0 } as const);
  const wait =
    waiting === undefined
      ? {}
      : { wait: { stage: waiting.stage, outcome, state, last_error: null } satisfies WaitBody };
  if (waiting !== undefined && wait.wait !== undefined) {
    process.exitCode = waitExitCodes[outcome];
    // Without an outbox, only the broker's id leads to the message.
    const complaint = waitComplaint(id, wait.wait, waiting.timeoutMs);
    if (complaint !== undefined) shell.err(hint(shell, `claudemesh: ${complaint}`));
  }
  const again = duplicate ? " (it was there already)" : "";
  const lines = [`${client_message_id}  ${state}${again}`, `At the broker it is ${id}.`, ...describeWay(readers)];
  return { value: { ...stored, status: "stored", via: "broker", ...readers, ...wait }, text: lines.join("\n") };
}

type DirectAnswer = {
  readonly client_message_id: string;
  readonly broker_message_id: string;
  readonly history_id: number;
  readonly duplicate: boolean;
};

/** The one end that leaves a caller in doubt, so it names the id with which asking again is safe. */
function unanswered(error: string, who: string, request: IdentifiedSend, cause: Error): Refused {
  const { client_message_id } = request;
  const message = `${who} took the message and did not answer; it may have been accepted. Send it again with --id ${client_message_id}`;
  return new Refused(503, { error, message, retryable: true, sent: true, client_message_id }, cause);
}

function describe(sent: SendBody): string {
  const again = sent.duplicate ? " (asked before)" : "";
  return [`${sent.client_message_id}  ${sent.status}${again}`, ...describeWay(sent)].join("\n");
}

async function parseMeta(command: Command, text: string): Promise<Meta> {
  const [{ parseStrictJsonText, StrictJsonError }, { limits }] = await Promise.all([
    import("@claudemesh/protocol/json"),
    import("@claudemesh/protocol/messages/limits"),
  ]);
  let value: unknown;
  try {
    value = parseStrictJsonText(text, { maxDepth: limits.jsonDepth });
  } catch (error) {
    if (!(error instanceof StrictJsonError)) throw error;
    command.error(`error: option '--meta <json>': ${error.message}`);
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Meta;
  command.error("error: option '--meta <json>': It takes a JSON object.");
}

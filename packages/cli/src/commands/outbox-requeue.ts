// `claudemesh daemon outbox requeue`: a stuck row's message under a new id. The daemon decides whether that is safe; here
// each of its refusals gets the next step.
import { readFileSync } from "node:fs";
import { MeshError } from "@claudemesh/protocol/errors";
import { parseStrictJson, StrictJsonError } from "@claudemesh/protocol/json";
import { limits } from "@claudemesh/protocol/messages/limits";
import type { PayloadPatch, RequeueRequest } from "@claudemesh/protocol/messages/requeue-request";
import { type Command, Option } from "commander";
import { messageId } from "../argument-forms.ts";
import { examples, type Outcome, run, withMesh } from "../command.ts";
import { withDaemon } from "../daemon-access.ts";
import { expectBody, Refused } from "../exit-codes.ts";
import { pathsFor, type Shell } from "../shell.ts";

type Options = {
  mesh?: string;
  json?: boolean;
  id?: string;
  newClientId?: string;
  auto?: boolean;
  patchPayload?: string;
  acceptDuplicate?: boolean;
};

export function define(command: Command, shell: Shell): void {
  withMesh(command)
    .argument("[id]", "outbox id or client id of a row that is dead or pending", messageId)
    .option("--id <id>", "the same as the argument", messageId)
    .addOption(new Option("--new-client-id <id>", "the new row's id").conflicts("auto"))
    .option("--auto", "a fresh id for the new row, which is the default")
    .option(
      "--patch-payload <path>",
      "JSON file with any of message, message_base64, meta, priority, reply_to_id; - reads standard input",
    )
    .option("--accept-duplicate", "requeue although the broker may have accepted the old row; both rows record it")
    .action((given: string | undefined, options: Options) => {
      const id = chooseId(command, given, options.id);
      return run(shell, options, () => requeue(shell, options, id));
    });
  examples(
    command,
    "claudemesh daemon outbox requeue 01JD8Z2V9K3M5N7P9Q1R3S5T7V",
    "claudemesh daemon outbox requeue --id build-42 --new-client-id build-42-again",
    "claudemesh daemon outbox requeue build-42 --patch-payload fix.json",
  );
}

function chooseId(command: Command, argument: string | undefined, option: string | undefined): string {
  const id = argument ?? option;
  if (id === undefined) command.error("error: say which row: requeue <id>, or --id <id>");
  if (option !== undefined && option !== id) command.error("error: <id> and --id name different rows");
  return id;
}

async function requeue(shell: Shell, options: Options, id: string): Promise<Outcome> {
  const request: RequeueRequest = {
    id,
    ...(options.newClientId === undefined ? {} : { new_client_id: options.newClientId }),
    ...(options.patchPayload === undefined ? {} : { patch_payload: readPatchFile(options.patchPayload) }),
    ...(options.acceptDuplicate === true ? { accept_duplicate: true } : {}),
  };
  const requeued = await withDaemon(shell, pathsFor(shell, options), async (daemon) => {
    const answer = await daemon.requeue(request);
    try {
      return expectBody(answer);
    } catch (error) {
      throw error instanceof Refused ? withNextStep(error, id) : error;
    }
  });
  const { old, new: successor } = requeued;
  return {
    value: requeued,
    text: `${old.client_message_id}  aborted\n${successor.client_message_id}  queued in its place`,
  };
}

/** What the fields mean is the daemon's to judge; here it only has to be one JSON object. */
function readPatchFile(path: string): PayloadPatch {
  const value = readJson(path);
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as PayloadPatch;
  throw new MeshError("invalid_request", "The patch is one JSON object.", { field: "patch_payload" });
}

function readJson(path: string): unknown {
  const bytes = readFileSync(path === "-" ? 0 : path);
  try {
    return parseStrictJson(bytes, { maxDepth: limits.jsonDepth });
  } catch (error) {
    if (!(error instanceof StrictJsonError)) throw error;
    const message = `The patch in ${path} is no JSON that can be used: ${error.reason} at offset ${error.offset}.`;
    throw new MeshError("invalid_request", message, { field: "patch_payload" }, error);
  }
}

function withNextStep(refusal: Refused, id: string): Refused {
  const { status, body } = refusal;
  const next = nextStep(body, id);
  return next === undefined ? refusal : new Refused(status, { ...body, message: `${body.message}\n${next}` }, refusal);
}

function nextStep(body: Refused["body"], id: string): string | undefined {
  switch (body.error) {
    case "not_requeueable": {
      const { client_message_id: successor } = (body.successor ?? {}) as { client_message_id?: unknown };
      return typeof successor === "string"
        ? `${successor} has taken its place: look with \`claudemesh status ${successor}\`.`
        : `See where it is with \`claudemesh status ${id}\`.`;
    }
    case "already_accepted":
      return `Nothing is left to do: \`claudemesh status ${id}\` shows where it is.`;
    case "fate_unknown":
      return "Try again when the broker is back, or add --accept-duplicate if arriving twice does no harm.";
    case "client_id_consumed":
      return "Choose another --new-client-id, or leave it out and get a fresh one.";
    case "payload_unreadable":
      return "Put message or message_base64 into the patch.";
    case "not_found":
      return "`claudemesh daemon outbox list` shows the rows that there are.";
    default:
      return undefined;
  }
}

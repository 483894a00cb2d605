// Asks a peer something and waits for the answer: node examples/send-and-wait.ts @reviewer "is 42 ready?"
// The peer is any program that answers as answering-agent.ts does. With the same --id it can be run again after a crash:
// that is still one question, and an answer that came meanwhile is found.
import { randomUUID } from "node:crypto";
import { parseArgs } from "node:util";
import { bodyOf, type InboxItem } from "@claudemesh/client/daemon";
import { openLocalDaemon } from "@claudemesh/client/local-daemon";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { id: { type: "string" }, "timeout-s": { type: "string", default: "60" } },
});
const [to, question] = positionals;
if (to === undefined || question === undefined) throw new Error("Usage: send-and-wait.ts <to> <question> [--id <id>]");

const daemon = openLocalDaemon();
const id = values.id ?? randomUUID();
const sent = bodyOf(await daemon.send({ to, message: question, client_message_id: id }));
console.error(`${id} ${sent.status}${sent.duplicate ? " (asked before)" : ""}`);

const answer = await waitForAnswer();
daemon.close();
if (answer === undefined) {
  console.error(`No answer within ${values["timeout-s"]} s. Ask again with --id ${id}.`);
  process.exitCode = 1;
} else {
  console.log(answer.body);
}

async function waitForAnswer(): Promise<InboxItem | undefined> {
  const signal = AbortSignal.timeout(Number(values["timeout-s"]) * 1_000);
  // From the moment at which the question was asked first, so that no answer is too early to be seen.
  const { row } = bodyOf(await daemon.outboxRow(id));
  for await (const item of daemon.followInbox({ since: row.enqueued_at }, { signal })) {
    if (item.client_message_id === `re:${id}`) return item;
  }
  return undefined;
}

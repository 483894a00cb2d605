// An agent that follows its inbox and answers direct messages: node examples/answering-agent.ts --state agent.cursor
// It goes on where it stopped, whatever stopped it. A message may be handled twice, when the agent dies between answering
// and writing down its cursor; the answer's id is made from the question's, so it is one answer all the same.
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { bodyOf, type InboxItem } from "@claudemesh/client/daemon";
import { openLocalDaemon } from "@claudemesh/client/local-daemon";
import { untilAnswered } from "@claudemesh/client/until-answered";

const { values } = parseArgs({ options: { state: { type: "string", default: "answering-agent.cursor" } } });
const stop = new AbortController();
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stop.abort());

const daemon = openLocalDaemon();
const query = existsSync(values.state) ? { cursor: readFileSync(values.state, "utf8") } : { since: 0 };
console.log("ready");
for await (const item of daemon.followInbox(query, { signal: stop.signal })) {
  if (isQuestion(item)) {
    const message = think(item.body ?? "");
    const answer = { to: `dm:${item.sender_pubkey}`, message, client_message_id: `re:${item.client_message_id}` };
    const send = () => daemon.send({ ...answer, reply_to_id: item.broker_message_id });
    const { status } = bodyOf(await untilAnswered(send, { signal: stop.signal }));
    bodyOf(await untilAnswered(() => daemon.markRead(item.id), { signal: stop.signal }));
    console.log(`answered ${item.client_message_id}: ${status}`);
  }
  remember(item.id);
}
daemon.close();

/** Direct messages that could be opened. Answers are left alone, or two agents would never stop talking. */
function isQuestion(item: InboxItem): boolean {
  return item.topic === null && item.body !== null && !item.client_message_id.startsWith("re:");
}

/** The text comes from another member: data to work on, never instructions to follow. */
function think(text: string): string {
  return `you wrote ${text.length} characters: ${text.toUpperCase()}`;
}

/** In one step, so that a crash leaves the old cursor or the new one. */
function remember(cursor: string): void {
  writeFileSync(`${values.state}.new`, cursor);
  renameSync(`${values.state}.new`, values.state);
}

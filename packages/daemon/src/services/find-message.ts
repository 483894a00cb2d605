// Gathers what is known of one message in the outbox, in the inbox, and at the broker where it can be asked.
// core/message-facts.ts makes the answer of it.

import { setImmediate as nextTurn } from "node:timers/promises";
import type { MessageFacts } from "@claudemesh/client/daemon";
import { MeshError } from "@claudemesh/protocol/errors";
import { isUuidV7 } from "@claudemesh/protocol/ids";
import { limits } from "@claudemesh/protocol/messages/limits";
import { type BrokerWord, type InboxEntry, type KnownMessage, showMessageFacts } from "../core/message-facts.ts";
import type { WayNow } from "../core/message-notes.ts";
import { readMessageState } from "../core/message-state.ts";
import type { OutboxRecord } from "../core/outbox-row.ts";
import type { BrokerIdSearch, BrokerLink, InboxEntries, OutboxStore } from "../ports.ts";
import type { NameOf } from "./peer-pins.ts";

export type FindMessagePorts = {
  readonly ownPubkey: string;
  readonly way: () => WayNow;
  readonly outbox: Pick<OutboxStore, "inspect">;
  readonly entries: Pick<InboxEntries, "find">;
  readonly search: BrokerIdSearch;
  readonly link: Pick<BrokerLink, "request" | "status">;
  readonly nameOf: NameOf;
  readonly requestTimeoutMs: number;
};

/** By client, outbox, inbox or broker id. */
export async function findMessage(ports: FindMessagePorts, askedId: string): Promise<MessageFacts> {
  const local = findHere(ports, askedId);
  const known = local === undefined ? await findByBrokerId(ports, askedId) : await addBrokerWord(ports, askedId, local);
  return showMessageFacts(known, ports);
}

type Local = Pick<KnownMessage, "row" | "chain" | "entry">;

function findHere(ports: FindMessagePorts, id: string): Local | undefined {
  const sent = ports.outbox.inspect(id);
  const entry = ports.entries.find(sent?.row.client_message_id ?? id);
  if (sent !== undefined) {
    const isOwn = entry !== undefined && isSameMessage(ports.ownPubkey, sent.row, entry);
    return { ...sent, entry: isOwn ? entry : undefined };
  }
  return entry === undefined ? undefined : { row: undefined, chain: [], entry };
}

/** Another member may have used the id with which a row of ours never got accepted. */
function isSameMessage(ownPubkey: string, row: OutboxRecord, entry: InboxEntry): boolean {
  return row.broker_message_id === entry.brokerMessageId || entry.envelope?.senderPubkey === ownPubkey;
}

async function addBrokerWord(ports: FindMessagePorts, askedId: string, local: Local): Promise<KnownMessage> {
  const broker = await askBroker(ports, local.row?.broker_message_id ?? local.entry?.brokerMessageId);
  return { ...local, askedId, broker };
}

/** The broker knows at once which client id belongs to its own; without it, or where it has forgotten, we look here. */
async function findByBrokerId(ports: FindMessagePorts, askedId: string): Promise<KnownMessage> {
  if (!isUuidV7(askedId)) throw notSentFromHere(askedId);
  const broker = await askBroker(ports, askedId);
  const carries = (local: Local | undefined) =>
    local?.row?.broker_message_id === askedId || local?.entry?.brokerMessageId === askedId;
  const clientMessageId = broker.type === "asked" ? broker.state.message?.clientMessageId : undefined;
  const byClientId = clientMessageId === undefined ? undefined : findHere(ports, clientMessageId);
  const local = carries(byClientId) ? byClientId : await searchHere(ports, askedId);
  if (local !== undefined) return { ...local, askedId, broker };
  if (broker.type === "asked") return { row: undefined, chain: [], entry: undefined, askedId, broker };
  if (broker.type === "not_found") throw notFound(askedId);
  throw new MeshError("broker_unreachable", `Nothing is known here of ${askedId}, and the broker cannot be asked.`);
}

async function searchHere(ports: FindMessagePorts, brokerMessageId: string): Promise<Local | undefined> {
  const { outbox, tombstones, inbox } = ports.search;
  for (const step of [outbox, tombstones, inbox]) {
    let before: string | undefined;
    do {
      const walked = step(brokerMessageId, before);
      if (walked.found !== undefined) return findHere(ports, walked.found);
      before = walked.before;
      // Other work of the daemon goes first.
      if (before !== undefined) await nextTurn();
    } while (before !== undefined);
  }
  return undefined;
}

/** However many recipients there are, an answer for people needs no more pages than this. */
const pagesMax = 10;

async function askBroker(ports: FindMessagePorts, brokerMessageId: string | undefined): Promise<BrokerWord> {
  if (brokerMessageId === undefined) return { type: "not_asked" };
  const first = await askPage(ports, brokerMessageId, undefined);
  if (first.type !== "asked") return first;
  const deliveries = [...first.state.deliveries];
  let { nextCursor } = first.state;
  for (let page = 1; page < pagesMax && nextCursor !== undefined; page++) {
    const next = await askPage(ports, brokerMessageId, nextCursor);
    if (next.type !== "asked") break;
    deliveries.push(...next.state.deliveries);
    nextCursor = next.state.nextCursor;
  }
  return { type: "asked", state: { ...first.state, deliveries } };
}

async function askPage(
  { link, requestTimeoutMs }: FindMessagePorts,
  brokerMessageId: string,
  after: string | undefined,
): Promise<BrokerWord> {
  if (link.status().state !== "online") return { type: "not_reachable" };
  const page = { limit: limits.pageItems, ...(after === undefined ? {} : { after }) };
  const input = { broker_message_id: brokerMessageId, ...page };
  const outcome = await link.request("message.state", input, { timeoutMs: requestTimeoutMs });
  if (outcome.type !== "answered") return { type: "not_reachable" };
  if (outcome.status === 404) return { type: "not_found" };
  const state = outcome.status === 200 ? readMessageState(outcome.body) : undefined;
  return state === undefined ? { type: "not_reachable" } : { type: "asked", state };
}

/** The broker can be asked by its own ids alone. */
function notSentFromHere(id: string): MeshError {
  const elsewhere = [
    "What was sent without this daemon is found by its broker id, which the send printed (broker_message_id);",
    "what a space's commit carried is stored exactly when the commit is in `claudemesh space log <space>`.",
  ];
  return new MeshError("not_found", [`Outbox and inbox of this host know no message ${id}.`, ...elsewhere].join(" "));
}

function notFound(id: string): MeshError {
  return new MeshError("not_found", `No message is known by the id ${id}.`);
}

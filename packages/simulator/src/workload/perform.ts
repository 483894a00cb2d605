// Does the operations of a plan as local programs would, and notes what was answered. What depends on the moment, such
// as which row can be requeued, is chosen by the number that the plan has drawn.
import { type DaemonOperation, type Operation, queueNames, topicNames } from "../core/plan.ts";
import type { Answers } from "../oracles/answers.ts";
import type { HistoryReader } from "../oracles/history-readers.ts";
import type { MeshWatch } from "../oracles/mesh-watch.ts";
import type { QueueWatch } from "../oracles/queue-watch.ts";
import { Violation } from "../oracles/violation.ts";
import type { Answer, CallEnd, DaemonActor } from "../world/daemon.ts";
import type { World } from "../world/world.ts";
import { AgentWork } from "./agent-work.ts";
import { Sender } from "./send.ts";

export type Records = {
  readonly answers: Answers;
  readonly queues: QueueWatch;
  readonly readers: readonly HistoryReader[];
  readonly mesh: MeshWatch;
};

type Of<Kind extends DaemonOperation["kind"]> = Extract<DaemonOperation, { kind: Kind }>;

export class Workload {
  readonly #world: World;
  readonly #records: Records;
  readonly #sender: Sender;
  readonly #agents: AgentWork;
  /** Operations under way. */
  open = 0;
  /** Operations that were asked of a process that was up. */
  done = 0;
  readonly outcomes = new Map<string, number>();

  constructor(world: World, records: Records) {
    this.#world = world;
    this.#records = records;
    this.#sender = new Sender(world, records.answers);
    this.#agents = new AgentWork(world, records.mesh, records.answers);
  }

  /** Resolves when it is over; rejects with a violation. */
  async perform(operation: Operation): Promise<void> {
    this.open++;
    try {
      const word = "agent" in operation ? await this.#agents.perform(operation) : await this.#ofDaemon(operation);
      if (word !== "away" && word !== "nothing") this.done++;
      this.#note(operation, word);
    } finally {
      this.open--;
    }
  }

  audit(daemon: number): Promise<CallEnd> {
    return this.#world.daemonAt(daemon).call("GET", "/v1/audit");
  }

  #note({ kind, number }: Operation, word: string): void {
    this.#world.log.add(this.#world.scheduler.nowMs, `operation ${number} ${kind}: ${word}`);
    this.outcomes.set(`${kind} ${word}`, (this.outcomes.get(`${kind} ${word}`) ?? 0) + 1);
  }

  async #ofDaemon(operation: DaemonOperation): Promise<string> {
    const end = await this.#do(operation);
    if (typeof end === "string") return end;
    if (end.body.error === "internal_error") {
      const { number, kind } = operation;
      throw new Violation("internal_error", `operation ${number} ${kind}: ${JSON.stringify(end.body)}`);
    }
    return `${end.status} ${String(end.body.error ?? end.body.status ?? "")}`;
  }

  #do(operation: DaemonOperation): Promise<CallEnd | "nothing"> {
    const daemon = this.#world.daemonAt(operation.daemon);
    switch (operation.kind) {
      case "send":
        return this.#sender.send(operation);
      case "retry":
        return this.#sender.retry(operation);
      case "clash":
        return this.#sender.clash(operation);
      case "requeue":
        return this.#requeue(daemon, operation);
      case "prune":
        return daemon.call("POST", "/v1/outbox/prune", { body: { older_than_days: operation.days } });
      case "mark_read":
        return this.#markRead(daemon, operation);
      case "read_history":
        return this.#readHistory(daemon, operation);
      case "consume":
        return this.#consume(daemon, operation);
      case "revive":
        return this.#revive(daemon, operation);
      case "subscribe":
      case "unsubscribe":
        return daemon.call("POST", `/v1/topic/${operation.kind}`, { body: { topic: topicNames[operation.topic] } });
    }
  }

  /** Of rows that can be, those that wait first; or, now and then, of one that was: its answer names the successor. */
  async #requeue(daemon: DaemonActor, operation: Of<"requeue">): Promise<CallEnd | "nothing"> {
    const choices = operation.again ? ["aborted"] : ["pending", "dead"];
    const rows = choices.map((status) => selectRequeueable(daemon, status)).find(({ length }) => length > 0) ?? [];
    const row = rows[operation.pick % Math.max(rows.length, 1)];
    if (row === undefined) return "nothing";
    const newClientId = `requeued-${operation.number}`;
    const { answers } = this.#records;
    const patch = operation.patched ? { message: `patched ${operation.number}` } : undefined;
    for (const body of patch === undefined ? answers.bodiesOf(row.client_message_id) : [patch.message]) {
      answers.expectBody(newClientId, body);
    }
    const end = await daemon.call("POST", "/v1/outbox/requeue", {
      body: {
        id: row.id,
        new_client_id: newClientId,
        accept_duplicate: operation.acceptDuplicate,
        ...(patch && { patch_payload: patch }),
      },
    });
    if (typeof end !== "string") {
      answers.noteRequeued(operation.daemon, end, patch === undefined ? row.prefix : undefined);
      if (operation.again && end.status === 200)
        throw new Violation("row_moved_wrongly", `${row.id} was requeued twice`);
    }
    return end;
  }

  async #markRead(daemon: DaemonActor, { pick }: Of<"mark_read">): Promise<CallEnd | "nothing"> {
    const rows = daemon.inbox.sql<{ id: string }>("SELECT id FROM inbox_message ORDER BY id DESC LIMIT 50").all();
    const row = rows[pick % Math.max(rows.length, 1)];
    if (row === undefined) return "nothing";
    return daemon.call("POST", "/v1/inbox/:id/read", { params: { id: row.id } });
  }

  async #readHistory(daemon: DaemonActor, { daemon: number, limit }: Of<"read_history">): Promise<CallEnd> {
    const reader = this.#records.readers[number];
    const after = reader?.after ?? 0;
    const end = await daemon.ask(({ askBroker }) => askBroker("history", { after, limit }));
    if (typeof end !== "string") reader?.note(after, end);
    return end;
  }

  /** Leases, asks again where no answer came, thinks, and settles as it meant to. */
  async #consume(daemon: DaemonActor, operation: Of<"consume">): Promise<CallEnd> {
    const { max, leaseSeconds, thinkMs, afterwards, number } = operation;
    const { queues } = this.#records;
    const params = { id: queueNames[operation.queue] };
    const body = { lease_request_id: `lease-${number}`, max, lease_s: leaseSeconds };
    let leased: CallEnd = "away";
    const ackedBefore = queues.ackedBefore();
    for (let tries = 0; tries < 3; tries++) {
      leased = await daemon.call("POST", "/v1/queue/:id/lease", { params, body });
      if (typeof leased !== "string" && leased.status < 500) break;
      await this.#pause(1_000);
    }
    if (typeof leased === "string") return leased;
    const items = queues.noteLease(ackedBefore, leased);
    if (items.length === 0 || afterwards === "abandon") return leased;
    await this.#pause(thinkMs);
    const ids = items.map(({ broker_message_id }) => broker_message_id);
    return this.#settle(daemon, params, afterwards, { lease_token: leased.body.lease_token, broker_message_ids: ids });
  }

  async #settle(daemon: DaemonActor, params: object, how: "ack" | "nack", body: object): Promise<CallEnd> {
    let end: CallEnd = "away";
    for (let tries = 0; tries < 3; tries++) {
      end = await daemon.call("POST", `/v1/queue/:id/${how}`, { params, body });
      if (typeof end !== "string" && end.status < 500) break;
      await this.#pause(1_000);
    }
    if (how === "ack" && typeof end !== "string") this.#records.queues.noteAck(end);
    return end;
  }

  async #revive(daemon: DaemonActor, { queue }: Of<"revive">): Promise<CallEnd> {
    const name = queueNames[queue] ?? "";
    const listed = await daemon.call("GET", "/v1/queue/:id/parked", { params: { id: name } });
    if (typeof listed === "string" || listed.status !== 200) return listed;
    const parked = (listed.body.items as readonly { broker_message_id: string }[]).slice(0, 5);
    if (parked.length === 0) return listed;
    this.#records.queues.revived = true;
    const broker_message_ids = parked.map((item) => item.broker_message_id);
    return daemon.ask(
      ({ askBroker }) => askBroker("queue.revive", { queue: name, broker_message_ids }) as Promise<Answer>,
    );
  }

  #pause(forMs: number): Promise<void> {
    return new Promise((resolve) => this.#world.scheduler.after(forMs, resolve));
  }
}

type RequeueableRow = { id: string; client_message_id: string; prefix: string };

/** A few of the latest, those of unknown fate first. */
function selectRequeueable({ outbox }: DaemonActor, status: string): RequeueableRow[] {
  return outbox
    .sql<RequeueableRow>(
      `SELECT id, client_message_id, lower(substr(hex(request_fingerprint), 1, 16)) AS prefix
       FROM outbox WHERE status = ? ORDER BY unanswered > 0 DESC, id DESC LIMIT 4`,
    )
    .all(status);
}

// One connection as the broker has it: hello, requests and replies, pushes by the real delivery pump and the real
// sessions of spaces. The same order of steps as the broker's own connection, without a socket and without signatures.
import type { RegisteredConnection } from "@claudemesh/broker/testing/connection-registry";
import { ConnectionSessions } from "@claudemesh/broker/testing/connection-sessions";
import type { BrokerContext } from "@claudemesh/broker/testing/context";
import { DeliveryPump } from "@claudemesh/broker/testing/delivery-pump";
import { LastHeard } from "@claudemesh/broker/testing/last-heard";
import { isOperationName, type RunOperation } from "@claudemesh/broker/testing/run-operation";
import type { Mesh } from "@claudemesh/members/ports";
import { announceFeatures } from "@claudemesh/protocol/features";
import type { Life } from "./host.ts";
import type { End, EndHandlers, Frame } from "./network.ts";

export type Served = {
  readonly life: Life;
  readonly mesh: Mesh;
  readonly context: BrokerContext;
  readonly run: RunOperation;
};

/** A peer that is silent for longer is gone. */
const silenceMs = 90_000;

type Caller = Parameters<RunOperation>[1];

export class BrokerConnection implements EndHandlers {
  readonly #served: Served;
  readonly #end: End;
  #helloSeen = false;
  #caller: Caller | undefined;
  #pump: DeliveryPump | undefined;
  #registered: RegisteredConnection | undefined;
  #closed = false;
  #heardAtMs: number;
  readonly #lastHeard: LastHeard;

  constructor(served: Served, end: End) {
    this.#served = served;
    this.#end = end;
    this.#heardAtMs = this.#nowMs();
    this.#lastHeard = new LastHeard(served.life.host.wallMs);
    const { dedupe, inlineBytes, connectionPolicy } = served.context.config;
    end.send({ type: "proof", features: announceFeatures({ dedupe, inlineBytes, connectionPolicy }) });
    this.#watch();
  }

  readonly onFrame = (frame: Frame): void => {
    if (this.#closed) return;
    this.#heardAtMs = this.#nowMs();
    if (!this.#lastHeard.again()) {
      this.#close("slept");
      return;
    }
    const { type, id, ...input } = frame;
    if (type === "ping") this.#end.send({ type: "pong" });
    else if (type === "hello") this.#onHello(frame);
    else if (this.#caller !== undefined && typeof type === "string" && isOperationName(type)) {
      this.#onRequest(this.#caller, type, id as number, input);
    } else this.#close("a frame before the hello was answered");
  };

  readonly onClose = (): void => {
    this.#leave();
  };

  #onHello(hello: Frame): void {
    // The network may bring a frame twice.
    if (this.#helloSeen) return;
    this.#helloSeen = true;
    this.#authenticate(hello).catch(() => this.#close("storage_unavailable"));
  }

  async #authenticate({ features, ...hello }: Frame): Promise<void> {
    const { mesh, context } = this.#served;
    const { connections } = context;
    const pubkey = String(hello.pubkey);
    const isDaemon = hello.kind !== "client";
    const member = await context.members.findMember(mesh.id, pubkey);
    if (this.#closed) return;
    if (member === undefined || member.revoked) {
      this.#end.send({ type: "reply", id: 0, status: 401, body: {} });
      this.#close("unauthorized");
      return;
    }
    const entry: RegisteredConnection = {
      meshId: mesh.id,
      pubkey,
      kind: isDaemon ? "daemon" : "client",
      wake: () => this.#pump?.wake(),
      replace: () => this.#close("replaced_by_newer"),
      refuse: () => this.#close("older_connection_kept"),
      cut: () => this.#close("member_revoked"),
      destinationGone: (gone) => {
        if (isDaemon && !this.#closed) this.#end.send({ type: "destination_gone", ...gone });
      },
      brokersChanged: () => undefined,
    };
    if (!connections.add(entry, context.config.connectionPolicy)) {
      entry.refuse();
      return;
    }
    this.#registered = entry;
    this.#caller = { mesh, member, sessions: this.#createSessions() };
    const { name, role } = member;
    const body = { mesh: mesh.name, mesh_id: mesh.id, member: { pubkey, name, role }, features };
    this.#end.send({ type: "reply", id: 0, status: 200, body });
    if (!isDaemon) return;
    this.#pump = this.#createPump(pubkey);
    this.#pump.wake();
  }

  #createPump(recipient: string): DeliveryPump {
    const { context, mesh, life } = this.#served;
    return new DeliveryPump({
      store: context.messages.deliveries,
      meshId: mesh.id,
      recipient,
      push: (item) => {
        if (!this.#closed) this.#end.send({ type: "message", ...item });
        return 256;
      },
      onFailure: () => this.#close("storage_unavailable"),
      nextTurn: life.nextTurn,
    });
  }

  #createSessions(): ConnectionSessions {
    const { context, life } = this.#served;
    return new ConnectionSessions({
      broker: context,
      push: async (frame) => {
        if (this.#closed) return;
        this.#end.send(frame);
        await new Promise<void>((resolve) => life.nextTurn(resolve));
      },
      onFailure: () => this.#close("storage_unavailable"),
    });
  }

  #onRequest(caller: Caller, type: Parameters<RunOperation>[0], id: number, input: object): void {
    void this.#served.run(type, caller, input).then((answer) => {
      if (!this.#served.life.alive) return;
      if (type === "ack" && answer.status === 200) {
        this.#pump?.settled((input as { history_ids: readonly number[] }).history_ids);
      }
      if (!this.#closed) this.#end.send({ type: "reply", id, status: answer.status, body: answer.body });
    });
  }

  #watch(): void {
    this.#served.life.setTimer(silenceMs, () => {
      if (this.#closed) return;
      if (this.#nowMs() - this.#heardAtMs >= silenceMs) this.#close("silent");
      else this.#watch();
    });
  }

  #close(reason: string): void {
    if (this.#closed) return;
    this.#end.close(reason);
    this.#leave();
  }

  #leave(): void {
    this.#closed = true;
    if (this.#registered !== undefined) this.#served.context.connections.remove(this.#registered);
    this.#pump?.stop();
    this.#caller?.sessions?.close();
    this.#caller = undefined;
  }

  #nowMs(): number {
    return this.#served.life.host.surroundings.scheduler.nowMs;
  }
}

// A broker that holds its own key and lies: a real one, whose members go through a proxy that passes the proof on and after
// that answers, changes, adds and keeps back what a test says. Nothing of the handshake tells it from an honest one.
import { type BrokerOptions, createMesh, joinMesh, withBroker } from "@claudemesh/client/broker";
import { identityOf } from "@claudemesh/client/keys";
import { decodeInvite } from "@claudemesh/protocol/wire/invite";
import { expect, onTestFinished } from "vitest";
import { type BreachingProxy, startBreachingProxy } from "./breaching-proxy.ts";
import { readAdminToken, startTestBroker } from "./broker-harness.ts";
import { MemberHome, soon, untilOnline } from "./member-home.ts";

export type Frame = Readonly<Record<string, unknown>>;
export type FalseAnswer = { readonly status: number; readonly body: unknown };

/** One connection to it, from a member that has said hello. */
type Caller = {
  pubkey: string;
  tell: (frame: object) => void;
  readonly hangUp: (code: number) => void;
  readonly asked: Map<unknown, Frame>;
};

export class MaliciousBroker {
  /** Answers that it gives without doing what was asked, by operation; undefined: this time it does it. */
  readonly instead = new Map<string, (request: Frame) => FalseAnswer | undefined>();
  /** What it makes of an honest answer, by operation. */
  readonly twists = new Map<string, (body: Frame) => Partial<FalseAnswer>>();
  /** What it makes of a message for a member before it goes on; undefined: it keeps it back. */
  deliver: (message: Frame) => Frame | undefined = (message) => message;
  /** Every message that it passed on or kept back, as the honest broker pushed it. */
  readonly pushed: Frame[] = [];
  readonly #callers = new Set<Caller>();
  #proxy: BreachingProxy | undefined;
  meshId = "";
  brokerKey = "";

  /** With a member of each name, whose daemons are connected. The first one owns the mesh. */
  static async with(...names: readonly string[]): Promise<{ broker: MaliciousBroker; members: MemberHome[] }> {
    const broker = new MaliciousBroker();
    const honest = await startTestBroker();
    await broker.#listen(() => honest.url);
    const members = names.map(() => new MemberHome());
    const [owner = expect.unreachable("a mesh needs an owner"), ...others] = members;
    const [ownerName = "", ...otherNames] = names;
    const order = { broker: honest.url, adminToken: readAdminToken(honest), name: "acme", ownerName, keys: owner.keys };
    const made = await createMesh(order);
    broker.meshId = made.mesh_id;
    broker.brokerKey = made.broker_key;
    owner.enter(broker.#configOf(ownerName));
    const asOwner = { broker: honest.url, identity: identityOf(owner.keys, made.mesh_id), agent: "test/1" };
    for (const [at, member] of others.entries()) {
      const name = otherNames[at] ?? "";
      const { invite } = (await withBroker(asOwner, (call) => call("invite.create", {}))) as { invite: string };
      await joinMesh({ invite: decodeInvite(invite), name, keys: member.keys });
      member.enter(broker.#configOf(name));
    }
    for (const member of members) await untilOnline(await member.startDaemon());
    return { broker, members };
  }

  get url(): string {
    return this.#proxy?.url ?? "";
  }

  #configOf(member_name: string) {
    return { id: this.meshId, broker: this.url, member_name, broker_key: this.brokerKey };
  }

  /** For a command of the member, past its daemon. */
  optionsOf({ keys }: MemberHome): BrokerOptions {
    return { broker: this.url, identity: identityOf(keys, this.meshId), agent: "test/1" };
  }

  /** Says something to a member that the honest broker never said. */
  tell(to: MemberHome, frame: object): void {
    for (const { pubkey, tell } of this.#callers) if (pubkey === to.pubkey) tell(frame);
  }

  /** A message that no member sent, or one that the broker has seen, changed as the test says. */
  push(to: MemberHome, message: Frame): void {
    this.tell(to, { type: "message", ...message });
  }

  /** Ends the member's connection with this code. */
  close(to: MemberHome, code: number): void {
    for (const { pubkey, hangUp } of this.#callers) if (pubkey === to.pubkey) hangUp(code);
  }

  /** The member goes away and comes back, and so asks anew for what it asks at a hello. */
  async meetAgain(member: MemberHome): Promise<void> {
    await member.daemon.stop();
    await untilOnline(await member.startDaemon());
  }

  /** The message of this client id, as the honest broker pushed it. */
  async untilPushed(clientMessageId: string): Promise<Frame> {
    const find = () => this.pushed.find(({ client_message_id }) => client_message_id === clientMessageId);
    await expect.poll(find, soon).toBeDefined();
    return find() ?? expect.unreachable();
  }

  async #listen(target: () => string): Promise<void> {
    const onSocket = (hangUp: (code: number) => void) => {
      const caller: Caller = { pubkey: "", tell: () => undefined, hangUp, asked: new Map() };
      return {
        up: (frame: Frame, back: (frame: object) => void) => this.#hear(caller, frame, back),
        down: (frame: Frame) => this.#answer(caller, frame),
      };
    };
    const proxy = await startBreachingProxy(target, { onSocket });
    this.#proxy = proxy;
    onTestFinished(() => proxy.stop());
  }

  #hear(caller: Caller, frame: Frame, back: (frame: object) => void): Frame | undefined {
    const type = String(frame.type);
    if (type === "hello") {
      caller.pubkey = String(frame.pubkey);
      caller.tell = back;
      this.#callers.add(caller);
    }
    const answer = this.instead.get(type)?.(frame);
    if (answer !== undefined) {
      back({ type: "reply", id: frame.id, ...answer });
      return undefined;
    }
    if (this.twists.has(type)) caller.asked.set(frame.id, frame);
    return frame;
  }

  #answer(caller: Caller, frame: Frame): Frame | undefined {
    if (frame.type === "message") {
      this.pushed.push(frame);
      return this.deliver(frame);
    }
    const request = frame.type === "reply" ? caller.asked.get(frame.id) : undefined;
    if (request === undefined) return frame;
    caller.asked.delete(frame.id);
    const twist = this.twists.get(String(request.type));
    return twist === undefined ? frame : { ...frame, ...twist(frame.body as Frame) };
  }
}

// A replica's connection to a space server in the same process. Every frame in either direction has a number; the
// connection is cut at the numbers that a test names, so that this frame and all behind it are lost.
import type { SpaceWire, WireEvents, WireOutcome } from "@claudemesh/client/space";
import { ServerEnd, type SpaceServer } from "./space-server.ts";

type Frame = { readonly deliver: () => void; readonly label: string };

export class CuttableWire implements SpaceWire {
  /** How many frames there were. */
  frames = 0;
  /** What each frame was, for a test that failed. */
  readonly labels: string[] = [];
  readonly #server: SpaceServer;
  readonly #member: string;
  readonly #isCut: (frame: number) => boolean;
  readonly #listeners = new Set<WireEvents>();
  readonly #open = new Set<(outcome: WireOutcome) => void>();
  #end: ServerEnd | undefined;
  #towardsClient: Frame[] = [];
  #isDelivering = false;
  #isClosed = false;
  /** A frame was lost, so that nothing behind it arrives either. */
  #isDead = false;

  constructor(server: SpaceServer, member: string, isCut: (frame: number) => boolean = () => false) {
    this.#server = server;
    this.#member = member;
    this.#isCut = isCut;
    this.connect();
  }

  /** Nothing is on its way. */
  get isQuiet(): boolean {
    return this.#open.size === 0 && this.#towardsClient.length === 0;
  }

  readonly isUp = (): boolean => this.#end !== undefined;

  readonly listen = (events: WireEvents): (() => void) => {
    this.#listeners.add(events);
    return () => this.#listeners.delete(events);
  };

  readonly request = (type: string, input: object): Promise<WireOutcome> => {
    const end = this.#end;
    if (end === undefined) return Promise.resolve({ type: "not_sent" });
    return new Promise((resolve) => {
      const settle = (outcome: WireOutcome) => {
        if (this.#open.delete(settle)) resolve(outcome);
      };
      this.#open.add(settle);
      if (this.#count(`> ${type}`)) return;
      // What is sent is text: nothing on this side can change it any more.
      const sent = JSON.parse(JSON.stringify(input)) as Record<string, unknown>;
      this.#server.handle(end, type, sent, ({ status, body }) => {
        const text = JSON.stringify(body);
        this.#enqueue(end, {
          label: `< ${status} ${type}`,
          deliver: () => settle({ type: "answered", status, body: JSON.parse(text) as unknown }),
        });
      });
    });
  };

  readonly close = async (): Promise<void> => {
    this.#isClosed = true;
    this.cut();
  };

  connect(): void {
    if (this.#isClosed || this.#end !== undefined) return;
    const end: ServerEnd = new ServerEnd(this.#member, (push) => {
      const text = JSON.stringify(push);
      const deliver = () => {
        for (const { onPush } of [...this.#listeners]) onPush(JSON.parse(text) as { type: string });
      };
      this.#enqueue(end, { label: `< ${push.type}`, deliver });
    });
    this.#end = end;
    this.#isDead = false;
    this.#server.attach(end);
    for (const { onUp } of [...this.#listeners]) onUp();
  }

  /** A push that comes at this very moment. */
  inject(push: { readonly type: string }): void {
    for (const { onPush } of [...this.#listeners]) onPush(push);
  }

  /** Everything on its way is lost, in both directions. */
  cut(): void {
    if (this.#end === undefined) return;
    this.#server.detach(this.#end);
    this.#end = undefined;
    this.#towardsClient = [];
    for (const settle of [...this.#open]) settle({ type: "connection_lost" });
    for (const { onDown } of [...this.#listeners]) onDown();
  }

  #enqueue(end: ServerEnd, frame: Frame): void {
    if (this.#end !== end) return;
    this.#towardsClient.push(frame);
    if (!this.#isDelivering) void this.#deliver();
  }

  /** One frame a turn, as a socket does. */
  async #deliver(): Promise<void> {
    this.#isDelivering = true;
    while (this.#towardsClient.length > 0) {
      await new Promise((resolve) => setImmediate(resolve));
      const frame = this.#towardsClient.shift();
      if (frame !== undefined && !this.#count(frame.label)) frame.deliver();
    }
    this.#isDelivering = false;
  }

  /** True if the connection was cut at this frame. It comes back at once. */
  #count(label: string): boolean {
    if (this.#isDead) return true;
    this.frames += 1;
    this.labels.push(label);
    if (!this.#isCut(this.frames)) return false;
    this.#isDead = true;
    this.labels.push("cut");
    setImmediate(() => {
      this.cut();
      this.connect();
    });
    return true;
  }
}

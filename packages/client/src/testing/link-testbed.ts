// A fake broker and the links that a test opens to it, with queues of what they report; everything is closed together.
import type { PushFrame } from "@claudemesh/protocol/wire/frames";
import { generateMemberKeys, identityOf } from "../keys/member-keys.ts";
import { trustInMemory } from "../link/broker-trust.ts";
import { type LinkTiming, openLink } from "../link/link.ts";
import type { Link, LinkOptions, LinkStatus } from "../link/link-contract.ts";
import { FakeBroker, type FakePeer, fakeBrokerKey, Queue } from "./fake-broker.ts";

export const testMeshId = "01890000-0000-7000-8000-000000000001";
export const testIdentity = identityOf(generateMemberKeys(), testMeshId);

/** For requests that a test answers itself. */
export const patiently = { timeoutMs: 20_000 };

export type OpenedLink = {
  readonly link: Link;
  readonly statuses: Queue<LinkStatus>;
  readonly pushes: Queue<PushFrame>;
  readonly reach: <S extends LinkStatus["state"]>(state: S) => Promise<Extract<LinkStatus, { state: S }>>;
};

export class LinkTestbed {
  broker: FakeBroker;
  readonly #links: Link[] = [];

  static async start(): Promise<LinkTestbed> {
    return new LinkTestbed(await FakeBroker.start());
  }

  private constructor(broker: FakeBroker) {
    this.broker = broker;
  }

  open(options: Partial<LinkOptions> = {}, timing?: LinkTiming): OpenedLink {
    const statuses = new Queue<LinkStatus>();
    const pushes = new Queue<PushFrame>();
    const link = openLink(
      {
        url: this.broker.url,
        identity: testIdentity,
        kind: "daemon",
        agent: "link-test/1",
        trust: trustInMemory(fakeBrokerKey),
        onStatus: (status) => statuses.push(status),
        onPush: (push) => pushes.push(push),
        backoff: { minMs: 1, maxMs: 2 },
        ...options,
      },
      timing,
    );
    this.#links.push(link);
    const reach = <S extends LinkStatus["state"]>(state: S) =>
      statuses.nextWhere((status) => status.state === state) as Promise<Extract<LinkStatus, { state: S }>>;
    return { link, statuses, pushes, reach };
  }

  async openOnline(
    options: Partial<LinkOptions> = {},
    timing?: LinkTiming,
  ): Promise<OpenedLink & { readonly peer: FakePeer }> {
    const opened = this.open(options, timing);
    const peer = await this.broker.welcomeNext();
    await opened.reach("online");
    return { ...opened, peer };
  }

  /** Five further links are opened and closed: what another link had scheduled for "at once" has happened by then. */
  async passSomeTime(): Promise<void> {
    for (let round = 0; round < 5; round++) {
      const { link } = await this.openOnline();
      await link.close();
    }
  }

  async stop(): Promise<void> {
    await Promise.all(this.#links.map((link) => link.close()));
    await this.broker.stop();
  }
}

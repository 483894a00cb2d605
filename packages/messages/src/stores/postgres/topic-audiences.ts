// How many each topic's last message went to, so that sends which have yet to be written can be weighed: the readers of a topic are
// known under the mesh's lock and not before. This is an estimate, which decides only how many sends share a transaction.
import type { SendToAccept } from "../../ports.ts";

const topicsMax = 1_024;

export class TopicAudiences {
  readonly #worthKnowing: number;
  readonly #byTopic = new Map<string, number>();

  /** Topics with fewer readers than this count as having one. */
  constructor(worthKnowing: number) {
    this.#worthKnowing = worthKnowing;
  }

  expected(send: SendToAccept): number {
    if (this.#byTopic.size === 0 || send.envelope.destination.kind !== "topic") return 1;
    return this.#byTopic.get(keyOf(send)) ?? 1;
  }

  note(send: SendToAccept, recipients: number): void {
    if (send.envelope.destination.kind !== "topic") return;
    const isLarge = recipients >= this.#worthKnowing;
    if (!isLarge && this.#byTopic.size === 0) return;
    const key = keyOf(send);
    this.#byTopic.delete(key);
    if (!isLarge) return;
    this.#byTopic.set(key, recipients);
    const [longestUnused] = this.#byTopic.keys();
    if (this.#byTopic.size > topicsMax && longestUnused !== undefined) this.#byTopic.delete(longestUnused);
  }
}

const keyOf = ({ meshId, envelope }: SendToAccept) => `${meshId} ${envelope.destination.ref}`;

// Whether this daemon's member still belongs to the mesh, as far as the broker has said so. Kept on disk: a daemon that
// starts while the broker is away must not take sends that can never leave. The next hello that succeeds ends it.
import type { LinkStatus } from "@claudemesh/client/internal/link-contract";
import { MeshError } from "@claudemesh/protocol/errors";
import type { Clock, Log, MembershipEnd, MembershipStore } from "../ports.ts";

export type MembershipPorts = {
  readonly mesh: string;
  readonly store: MembershipStore;
  readonly clock: Pick<Clock, "nowMs">;
  readonly log: Log;
};

export class Membership {
  readonly #ports: MembershipPorts;
  #ended: MembershipEnd | undefined;

  constructor(ports: MembershipPorts) {
    this.#ports = ports;
    this.#ended = ports.store.load();
  }

  /** Undefined while this daemon is a member, as far as it knows. */
  get ended(): MembershipEnd | undefined {
    return this.#ended;
  }

  /** Throws where nothing new is taken any more. */
  require(): void {
    if (this.#ended === undefined) return;
    const { mesh } = this.#ports;
    const message = [
      `This member was removed from the mesh ${mesh}, so nothing new is taken; what is queued stays until it is too old.`,
      `To be a member again, ask an owner for an invite, then: claudemesh daemon remint --mesh ${mesh} --invite <invite>`,
    ].join(" ");
    throw new MeshError("membership_ended", message, { mesh, ended_at: this.#ended.at });
  }

  /** Only the link's own word counts: that the broker is away says nothing about the member. */
  applyLinkStatus(status: LinkStatus): void {
    if (status.state === "online" && this.#ended !== undefined) this.#change(undefined);
    const isEnd = status.state === "offline" && status.reason === "member_revoked";
    if (isEnd && this.#ended === undefined) {
      this.#ports.log.warn(
        { event: "membership_ended", detail: status.detail },
        "this member was removed from the mesh",
      );
      this.#change({ at: this.#ports.clock.nowMs() });
    }
  }

  #change(ended: MembershipEnd | undefined): void {
    this.#ended = ended;
    this.#ports.store.save(ended).catch((error: unknown) => {
      // The next hello says it again.
      this.#ports.log.error({ event: "membership_not_kept", err: error }, "the state of the membership was not kept");
    });
  }
}

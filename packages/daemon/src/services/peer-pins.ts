// Names that this host has sent to, each pinned to the key that it stood for then. A pinned name that has another key now is
// logged once for each new key, published and counted. A send asks here whether it may go to the key that the name has now.
import { peerCode } from "@claudemesh/client/internal/peer-code";
import { MeshError } from "@claudemesh/protocol/errors";
import { keyChanged, keyFingerprint, type PeerPin, type PeerTrust, trustOf } from "../core/peer-pin.ts";
import type { Log, PeerPinsStore } from "../ports.ts";
import type { MemberDirectory } from "./member-directory.ts";

export type PeerPinsPorts = {
  readonly store: PeerPinsStore;
  readonly ownPubkey: string;
  readonly nowMs: () => number;
  readonly log: Log;
  readonly onKeyChanged: (change: Readonly<Record<string, unknown>>) => void;
};

type Members = Pick<MemberDirectory, "keysOf" | "nameOf">;

/** The name to show for a key; `remembered`: the one that it had when it was last heard of. */
export type NameOf = (pubkey: string, remembered?: string) => string | undefined;

/** A name with the key that is pinned for it, where one is, and the one that the broker says it has now. */
export type ShownPin = {
  readonly name: string;
  readonly trust: PeerTrust;
  readonly pubkey: string;
  readonly fingerprint: string;
  readonly pinned_at: number | null;
  readonly verified_at: number | null;
  /** Null where no member has the name now, or several have. */
  readonly current_pubkey: string | null;
  readonly current_fingerprint: string | null;
};

export class PeerPins {
  readonly #ports: PeerPinsPorts;
  readonly #pins: Map<string, PeerPin>;
  /** The key that each changed name has now, where that was reported. */
  readonly #changed = new Map<string, string>();
  #changes = 0;

  constructor(ports: PeerPinsPorts) {
    this.#ports = ports;
    this.#pins = new Map(ports.store.load().map((pin) => [pin.name, pin]));
  }

  /** Changes of keys that were seen since the start, and names whose key is another one now. */
  get counts(): { readonly seen: number; readonly changed: number } {
    return { seen: this.#changes, changed: this.#changed.size };
  }

  /** Why nothing is sent to a name that has this key now. */
  refusal(name: string, pubkey: string): MeshError | undefined {
    const pin = this.#pins.get(name);
    return pin === undefined || pin.pubkey === pubkey ? undefined : keyChanged(pin, pubkey);
  }

  /**
   * The keys of a sender that is asked for by name: the pinned one where there is one, also of a former member. Throws where the
   * name has another key now: its messages would be read as those of the member that was meant.
   */
  sendersCalled(name: string, members: Pick<MemberDirectory, "keysOf">): readonly string[] {
    const keys = members.keysOf(name);
    const pin = this.#pins.get(name);
    if (pin === undefined) return keys;
    const [other] = keys;
    if (other === undefined || keys.includes(pin.pubkey)) return [pin.pubkey];
    throw keyChanged(pin, other, "no message is shown under this name");
  }

  /** The first use pins, durably before anything is sent; undefined where that was done. */
  use(name: string, pubkey: string): Promise<void> | undefined {
    if (this.#pins.has(name)) return undefined;
    return this.#put({ name, pubkey, pinnedAt: this.#ports.nowMs(), verifiedAt: undefined });
  }

  trust(name: string, pubkey: string): PeerTrust {
    return trustOf(this.#pins.get(name), pubkey);
  }

  /** A peer as the broker shows it, with what is known here of its key. */
  describe<Shown extends { readonly name: string; readonly pubkey: string }>(peer: Shown) {
    const { name, pubkey } = peer;
    return { ...peer, fingerprint: keyFingerprint(pubkey), trust: this.trust(name, pubkey) };
  }

  /**
   * The name that is shown for a key: the one that it has, or had when it was last heard of or written to.
   * A name that is pinned to another key, or that another member has too, is not shown: it would be read as that member's.
   */
  nameOf(
    members: Pick<MemberDirectory, "nameOf" | "isAnothers">,
    pubkey: string,
    remembered: string | undefined,
  ): string | undefined {
    const name = members.nameOf(pubkey) ?? remembered ?? this.#nameOfPinned(pubkey);
    if (name === undefined) return undefined;
    const trust = this.trust(name, pubkey);
    if (trust === "unpinned") return members.isAnothers(name, pubkey) ? undefined : name;
    return trust === "changed" ? undefined : name;
  }

  /** To be called with every new list of members. */
  compare(members: Members): void {
    for (const pin of this.#pins.values()) {
      const keys = members.keysOf(pin.name);
      if (keys.includes(pin.pubkey)) this.#changed.delete(pin.name);
      const [pubkey] = keys;
      if (pubkey === undefined || keys.includes(pin.pubkey) || this.#changed.get(pin.name) === pubkey) continue;
      this.#changed.set(pin.name, pubkey);
      this.#changes++;
      const { name, details } = keyChanged(pin, pubkey);
      const change = { ...details };
      this.#ports.log.warn({ event: "peer_key_changed", ...change }, `${name}: a pinned name has another key`);
      this.#ports.onKeyChanged(change);
    }
  }

  list(members: Members): ShownPin[] {
    return [...this.#pins.values()].map((pin) => show(pin.name, pin.pubkey, pin, members));
  }

  /** One name, pinned or not, with the code to compare: of the key that it has now. */
  async show(name: string, members: Members): Promise<ShownPin & { readonly code: string }> {
    const shown = this.#find(name, members);
    return { ...shown, code: await peerCode(this.#ports.ownPubkey, shown.current_pubkey ?? shown.pubkey) };
  }

  /** Pins the key that the name has now, whatever was pinned before. `pubkey` is what the caller was shown. */
  async accept(name: string, pubkey: string, members: Members, isVerified: boolean): Promise<ShownPin> {
    const { current_pubkey: current } = this.#find(name, members);
    if (current !== pubkey) {
      throw new MeshError("peer_key_changed", `${name} does not have this key now; look again.`, {
        name,
        pubkey: current,
        ...(current === null ? {} : { fingerprint: keyFingerprint(current) }),
      });
    }
    const known = this.#pins.get(name);
    const isSame = known?.pubkey === pubkey;
    const nowMs = this.#ports.nowMs();
    const verifiedAt = isVerified ? nowMs : isSame ? known.verifiedAt : undefined;
    await this.#put({ name, pubkey, pinnedAt: isSame ? known.pinnedAt : nowMs, verifiedAt });
    this.#changed.delete(name);
    this.#ports.log.info({ event: "peer_trusted", name, pubkey, verified: isVerified }, "a key was trusted here");
    return this.#find(name, members);
  }

  /** Former members are in no list of the broker's; who wrote to one knows it by its name. */
  #nameOfPinned(pubkey: string): string | undefined {
    for (const pin of this.#pins.values()) if (pin.pubkey === pubkey) return pin.name;
    return undefined;
  }

  #find(name: string, members: Members): ShownPin {
    const pin = this.#pins.get(name);
    const pubkey = pin?.pubkey ?? members.keysOf(name)[0];
    if (pubkey === undefined) throw new MeshError("not_found", `No member called ${name} is known here.`);
    return show(name, pubkey, pin, members);
  }

  /** Known at once, so that two first sends agree; forgotten again where it could not be stored. */
  async #put(pin: PeerPin): Promise<void> {
    const before = this.#pins.get(pin.name);
    this.#pins.set(pin.name, pin);
    try {
      await this.#ports.store.put(pin);
    } catch (error) {
      if (before === undefined) this.#pins.delete(pin.name);
      else this.#pins.set(pin.name, before);
      throw error;
    }
  }
}

function show(name: string, pubkey: string, pin: PeerPin | undefined, members: Members): ShownPin {
  const keys = members.keysOf(name);
  const current = keys.length === 1 ? (keys[0] ?? null) : null;
  return {
    name,
    trust: trustOf(pin, current ?? pubkey),
    pubkey,
    fingerprint: keyFingerprint(pubkey),
    pinned_at: pin?.pinnedAt ?? null,
    verified_at: pin?.verifiedAt ?? null,
    current_pubkey: current,
    current_fingerprint: current === null ? null : keyFingerprint(current),
  };
}

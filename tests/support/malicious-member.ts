// A member with a good key and bad intentions: a peer that speaks the protocol by itself and seals what it likes.
import { joinMesh, withBroker } from "@claudemesh/client/broker";
import { generateMemberKeys, identityOf, type MemberKeys } from "@claudemesh/client/keys";
import { loadSealer } from "@claudemesh/client/seal";
import type { SealedContent } from "@claudemesh/protocol/messages/sealed-content";
import { decodeInvite } from "@claudemesh/protocol/wire/invite";
import type { MemberHome } from "./member-home.ts";
import { peerKeysOf } from "./peer-keys.ts";
import { type PeerReply, RawPeer } from "./raw-peer.ts";

export class MaliciousMember {
  readonly keys: MemberKeys;
  readonly meshId: string;
  readonly peer: RawPeer;

  private constructor(keys: MemberKeys, meshId: string, peer: RawPeer) {
    this.keys = keys;
    this.meshId = meshId;
    this.peer = peer;
  }

  /** Let in by an owner's own invite, under a name of its choice. */
  static async join(url: string, meshId: string, owner: MemberHome, name: string): Promise<MaliciousMember> {
    const keys = generateMemberKeys();
    const asOwner = { broker: url, identity: identityOf(owner.keys, meshId), agent: "test/1" };
    const { invite } = (await withBroker(asOwner, (call) => call("invite.create", {}))) as { invite: string };
    await joinMesh({ invite: decodeInvite(invite), name, keys });
    const signing = { meshId, keys: peerKeysOf(keys.ed25519.secret_key) };
    return new MaliciousMember(keys, meshId, await RawPeer.connect(url, signing, "daemon"));
  }

  get pubkey(): string {
    return this.keys.ed25519.public_key;
  }

  /** A box for a member, in which stands what the test says, whatever stands beside it. */
  async box(to: string, content: Partial<SealedContent>): Promise<string> {
    const { seal } = await loadSealer(this.keys);
    const said = { recipient: to, clientMessageId: "", replyToId: undefined, priority: "next" } as const;
    const none = { fromAgent: undefined, toAgent: undefined, canonicalMeta: "", body: Buffer.from("hello") };
    const requestFingerprint = new Uint8Array(32);
    return Buffer.from(seal({ content: { ...said, ...none, ...content }, requestFingerprint })).toString("base64");
  }

  /** Sends a body that says of itself that it is a box. */
  send(to: string, id: string, body_base64: string, given: object = {}): Promise<PeerReply> {
    const destination = { kind: "dm", ref: to };
    return this.peer.request("send", {
      client_message_id: id,
      destination,
      envelope_version: "3",
      body_base64,
      ...given,
    });
  }
}

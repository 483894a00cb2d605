// The meshes that a benchmark sends to: a sender with a key and a token, and a topic with three subscribers who are not
// connected. Written through the product's own stores before anything is measured.
import { randomBytes } from "node:crypto";
import { generateMemberKeys, type MemberKeys } from "@claudemesh/client/keys";
import { hashToken, mintSecret } from "@claudemesh/members/credentials";
import { createUuidV7Generator } from "@claudemesh/protocol/ids";
import { openStore, type StoreLocation } from "./store-location.ts";

export const benchTopic = "bench";
const subscriberCount = 3;
export const bodyBytes = 1_024;
export const benchBody = "m".repeat(bodyBytes);

export type BenchMesh = {
  readonly id: string;
  readonly name: string;
  readonly keys: MemberKeys;
  readonly token: string;
  readonly subscribers: readonly string[];
};

/** The members of one mesh can be many more than its three subscribers. */
export type MeshWish = { readonly name: string; readonly subscribers: readonly MemberKeys[] };

export function wishMeshes(prefix: string, count: number): MeshWish[] {
  return Array.from({ length: count }, (_, at) => ({
    name: `${prefix}-${at}`,
    subscribers: Array.from({ length: subscriberCount }, generateMemberKeys),
  }));
}

/** With `like`, the same meshes that another store has already, down to ids, keys and tokens. */
export async function addMeshes(
  location: StoreLocation,
  wishes: readonly MeshWish[],
  like: readonly BenchMesh[] = [],
): Promise<BenchMesh[]> {
  const backend = await openStore(location);
  const nextId = createUuidV7Generator({ nowMs: Date.now, randomBytes });
  try {
    const meshes: BenchMesh[] = [];
    for (const [at, { name, subscribers }] of wishes.entries()) {
      const mesh = like[at] ?? { id: nextId(), name, keys: generateMemberKeys(), token: mintSecret("cmt") };
      const owner = { pubkey: mesh.keys.ed25519.public_key, name: "sender" };
      const nowMs = Date.now();
      await backend.members.createMesh({ id: mesh.id, name }, owner, nowMs);
      const token = { id: nextId(), tokenHash: hashToken(mesh.token), pubkey: owner.pubkey, label: "bench" };
      await backend.members.addToken(mesh.id, token, nowMs);
      const topic = { name: benchTopic, postPolicy: "members", createdBy: owner.pubkey } as const;
      await backend.messages.topics.create(mesh.id, topic, nowMs);
      for (const [number, { ed25519 }] of subscribers.entries()) {
        const terms = { createdBy: owner.pubkey, expiresAt: nowMs + 600_000 };
        const invite = { id: nextId(), secretHash: randomBytes(32), ...terms };
        await backend.members.addInvite(mesh.id, invite, nowMs);
        const member = { pubkey: ed25519.public_key, name: `subscriber-${number}` };
        await backend.members.join(mesh.id, invite.secretHash, member, nowMs);
        await backend.messages.topics.subscribe(mesh.id, benchTopic, ed25519.public_key, nowMs);
      }
      meshes.push({ ...mesh, subscribers: subscribers.map(({ ed25519 }) => ed25519.public_key) });
    }
    return meshes;
  } finally {
    await backend.close();
  }
}

// Which members are connected, and what members say of themselves.
import type { PageInput, ProfileInput } from "@claudemesh/protocol/wire/operations";
import { toPeerItem } from "../transport/peer-item.ts";
import { type Handlers, ok, pageLimit } from "./handler.ts";

export const presenceHandlers = {
  "peers.list": async (broker, { member }, input: PageInput) => {
    const { meshId, pubkey } = member;
    const query = { meshId, reader: pubkey, after: input.after ?? "", limit: pageLimit(input) };
    const page = await broker.messages.presence.peers(query, broker.nowMs());
    return ok({ items: page.items.map(toPeerItem), next_cursor: page.nextCursor ?? null });
  },

  "profile.set": async (broker, { member }, input: ProfileInput) => {
    const { meshId, pubkey } = member;
    const profile = await broker.messages.presence.setProfile(meshId, pubkey, input, broker.nowMs());
    // A member that became visible or invisible has come or gone, as others see it.
    if (input.visible !== undefined) broker.connections.presenceChanged(meshId);
    return ok({ pubkey, ...profile });
  },
} satisfies Handlers;

// Who a daemon is started as: the member whose keys lie in the home, or one that lives for this run alone. Build
// machines get the second by default, because a key that is written there outlives the job or is lost with it.
import type { Invite } from "@claudemesh/protocol/wire/invite";

export type IdentityWish = {
  readonly persistent: boolean;
  readonly ephemeral: boolean;
  readonly invite: Invite | undefined;
  readonly ttlMs: number | undefined;
  readonly name: string | undefined;
};

export type IdentityFacts = {
  /** The variable by which a build machine is known. */
  readonly ciVariable: string | undefined;
  /** The home holds keys for this mesh. */
  readonly hasKeys: boolean;
};

export type IdentityChoice =
  | { readonly type: "kept" }
  /** A member that stays, and still has to join. */
  | { readonly type: "joins"; readonly invite: Invite }
  | { readonly type: "ephemeral"; readonly invite: Invite; readonly because: string | undefined }
  | { readonly type: "contradiction"; readonly message: string };

export function chooseIdentity(wish: IdentityWish, facts: IdentityFacts): IdentityChoice {
  const { invite } = wish;
  if (invite === undefined) {
    if (wish.ephemeral) return contradiction("--ephemeral needs --invite <invite>: its keys are new each time.");
    if (wish.name !== undefined) return contradiction("--name is for a member that joins; give --invite <invite> too.");
  } else if (wish.ephemeral) {
    return { type: "ephemeral", invite, because: undefined };
  } else if (!wish.persistent && facts.ciVariable !== undefined && !facts.hasKeys) {
    return { type: "ephemeral", invite, because: facts.ciVariable };
  }
  if (wish.ttlMs !== undefined) return contradiction("--ttl is for an ephemeral daemon; give --ephemeral too.");
  return invite === undefined || facts.hasKeys ? { type: "kept" } : { type: "joins", invite };
}

function contradiction(message: string): IdentityChoice {
  return { type: "contradiction", message };
}

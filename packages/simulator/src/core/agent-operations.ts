// What agents do in a plan, beside what is asked of daemons: transactions, branches and merges on a shared space,
// registrations under approvals, and effects that must happen once.

type AskedOfAgent = { readonly atMs: number; readonly number: number; readonly agent: number };

export type AgentOperation =
  /** So many transactions one upon the other, without waiting for verdicts. `salt` decides what they read and write. */
  | (AskedOfAgent & {
      readonly kind: "transact";
      readonly salt: number;
      readonly stacked: number;
      /** Every agent does so at the same moment. */
      readonly together: boolean;
      /** 0: the default branch; else one of those that are there. */
      readonly branch: number;
      readonly sends: readonly SpaceSend[];
      readonly retries: number;
    })
  | (AskedOfAgent & { readonly kind: "branch"; readonly pick: number; readonly deletes: boolean })
  | (AskedOfAgent & { readonly kind: "merge"; readonly salt: number })
  /** Another connection opens the session with its token; then something that is on its way arrives with the old one. */
  | (AskedOfAgent & { readonly kind: "takeover" })
  /** A commit that was decided comes again, as it was or with other content. */
  | (AskedOfAgent & { readonly kind: "replay"; readonly pick: number; readonly altered: boolean })
  | (AskedOfAgent & { readonly kind: "read_past"; readonly pick: number })
  /** Approved by the owner, then registered by this agent. `passes`: the verifier will let it. */
  | (AskedOfAgent & { readonly kind: "register"; readonly passes: boolean })
  | (AskedOfAgent & { readonly kind: "register_again"; readonly pick: number; readonly freshApproval: boolean })
  | (AskedOfAgent & { readonly kind: "collide"; readonly how: "same_request" | "same_effect" | "same_nonce" })
  | (AskedOfAgent & {
      readonly kind: "misuse";
      readonly pick: number;
      readonly how: "other_effect" | "wrong_nonce" | "spent_nonce" | "revoked" | "expired" | "same_effect";
    })
  | (AskedOfAgent & { readonly kind: "compensate"; readonly pick: number; readonly twice: boolean })
  | (AskedOfAgent & { readonly kind: "status"; readonly pick: number })
  | (AskedOfAgent & {
      readonly kind: "once";
      readonly key: number;
      readonly otherInputs: boolean;
      readonly leaseSeconds: number;
      readonly thinkMs: number;
      readonly waits: boolean;
      /** The process dies before or after the effect, the effect declines, or it fails. */
      readonly fate: "works" | "dies_before" | "dies_after" | "declines" | "fails";
      readonly downMs: number;
    })
  /** An operator looks at keys whose fate is uncertain, finds out, and says so. */
  | (AskedOfAgent & { readonly kind: "resolve"; readonly pick: number });

export type SpaceSend =
  | { readonly kind: "topic"; readonly topic: number }
  | { readonly kind: "queue"; readonly queue: number }
  | { readonly kind: "nowhere" }
  /** The id of an earlier one of this agent. */
  | { readonly kind: "used_id" };

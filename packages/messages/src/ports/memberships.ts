// What ending a membership needs from the message side. That a member is revoked is the members store's truth, and
// everything here checks it; this clears away what the former member still had coming.

export type FormerMember = { readonly meshId: string; readonly pubkey: string };

export type MembershipStore = {
  /**
   * Ends up to `limit` things of a revoked member: its unsettled deliveries are settled as expired, what it holds of
   * queues goes back at once, its presence and the webhooks that it made end. Returns how many there were; 0: nothing is left. A live member has
   * nothing to end.
   */
  readonly end: (former: FormerMember, nowMs: number, limit: number) => Promise<number>;
  /** Revoked members that still have something to end, as after a crash between revoking and ending. */
  readonly unfinished: (limit: number) => Promise<FormerMember[]>;
};

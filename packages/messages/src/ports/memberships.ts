// What ending a membership, or an owner's role, needs from the message side. Who is a member and who an owner is the
// members store's truth, and everything here checks it; this clears away what the former one still had coming.

export type FormerMember = { readonly meshId: string; readonly pubkey: string };

export type MembershipStore = {
  /**
   * Ends up to `limit` things of a revoked member: its unsettled deliveries are settled as expired, what it holds of
   * queues goes back at once, its presence and the webhooks that it made end. Of a live member that is no owner only its
   * webhooks end, of an owner nothing. Returns how many there were; 0: nothing is left.
   */
  readonly end: (former: FormerMember, nowMs: number, limit: number) => Promise<number>;
  /** Members that still have something to end, as after a crash between revoking, or a new role, and ending. */
  readonly unfinished: (limit: number) => Promise<FormerMember[]>;
};

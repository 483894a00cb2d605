// Every error code that crosses a boundary, with the HTTP status it always has, whether the same request may succeed
// later unchanged, and how loudly a server logs it. docs/errors.md lists the same codes for people; a test keeps the
// two equal. Codes are never renamed or reused.

export type LogLevel = "debug" | "info" | "warn" | "error";

type CatalogueEntry = {
  readonly status: number;
  readonly retryable: boolean;
  readonly level: LogLevel;
  readonly meaning: string;
  /** The class name that the spaces contract gives this error; the body has it beside the code. */
  readonly name?: string;
};

const refusal = (status: number, meaning: string, level: LogLevel = "info"): CatalogueEntry => ({
  status,
  retryable: false,
  level,
  meaning,
});
const passing = (status: number, meaning: string, level: LogLevel = "warn"): CatalogueEntry => ({
  status,
  retryable: true,
  level,
  meaning,
});

/** An error that the spaces contract names: its code is the name in snake_case. */
const named = (name: string, entry: CatalogueEntry): CatalogueEntry => ({ ...entry, name });

export const errorCatalogue = {
  // The request cannot be understood. Nothing was consumed.
  invalid_utf8: refusal(400, "The request is not valid UTF-8."),
  invalid_json: refusal(400, "The request is not JSON."),
  duplicate_key: refusal(400, "An object names the same key twice."),
  lone_surrogate: refusal(400, "A string holds half of a surrogate pair."),
  number_out_of_range: refusal(400, "An integer is beyond ±(2^53 − 1), or a number overflows."),
  too_deep: refusal(400, "The JSON is nested too deeply."),
  nul_in_field: refusal(400, "A field other than the body holds the character U+0000."),
  invalid_request: refusal(400, "A field is missing or has the wrong type or value."),
  unknown_field: refusal(400, "The request has a field that this call does not know."),
  invalid_client_message_id: refusal(400, "A client_message_id is 1–128 printable ASCII characters without spaces."),
  idempotency_key_ambiguous: refusal(400, "Idempotency-Key and client_message_id are both given and differ."),
  invalid_address: refusal(400, "An address is #topic, @name, @self, topic:name, dm:<public key hex> or queue:<id>."),
  invalid_name: refusal(400, "A name is 1–64 of letters, digits, '.', '_' and '-', beginning with a letter or digit."),
  invalid_mentions: refusal(400, "meta.mentions is a sorted list of distinct public keys in lower-case hex."),
  invalid_invite: refusal(400, "The invite cannot be read."),
  token_in_query: refusal(400, "A token was put into the query string; send it in the Authorization header.", "warn"),
  webhook_address_refused: refusal(400, "Webhooks go to public addresses, unless the broker allows private ones."),
  // The caller's identity.
  unauthorized: refusal(401, "The credentials are missing, wrong or revoked."),
  forbidden: refusal(403, "This member may not do that."),
  forbidden_host: refusal(403, "The Host header does not name this machine's loopback.", "warn"),
  forbidden_origin: refusal(403, "The Origin is not on the allow-list.", "warn"),
  not_subscribed: refusal(403, "Only subscribers may post to this topic."),
  membership_ended: refusal(403, "This member was removed from the mesh, so nothing new is taken."),
  nonce_unbound: refusal(403, "The nonce is not bound to an approval of exactly this, now."),
  invite_refused: refusal(403, "The invite is unknown, expired, revoked or already used by another key."),
  // What the request asks for.
  not_found: refusal(404, "There is no such thing, or it is not yours to see."),
  destination_not_found: refusal(404, "No such topic, member or queue."),
  method_not_allowed: refusal(405, "This path does not take this method."),
  request_timeout: passing(408, "The request did not arrive in time."),
  idempotency_key_reused: refusal(409, "This client_message_id is taken; use a new one."),
  fenced: refusal(409, "This client_message_id was fenced before it was accepted and can never be."),
  destination_ambiguous: refusal(409, "Several members have this name; use dm:<public key>."),
  peer_key_changed: refusal(409, "The name stands for another key than the one that is pinned here.", "warn"),
  lease_lost: refusal(409, "The lease ran out, or never held these messages; lease again under a new request id."),
  name_taken: refusal(409, "A member or a former member of the mesh has this name; choose another."),
  invite_names_another: refusal(409, "The invite is for another name; join under that one."),
  invite_used: refusal(409, "The invite has let a member in; revoke that member instead."),
  last_owner: refusal(409, "A mesh keeps at least one owner."),
  exists_with_other_content: refusal(409, "Something with this name exists and differs."),
  mesh_limit_reached: refusal(
    409,
    "The mesh has as many of these as it may have; remove some, or let an owner raise it.",
  ),
  not_requeueable: refusal(409, "Only a row that is dead or pending can be requeued."),
  not_dismissible: refusal(
    409,
    "Only a dead row can be dismissed, or one that waits after its member was removed from the mesh.",
  ),
  client_id_consumed: refusal(409, "The new client_message_id stands for something already; choose another."),
  already_accepted: refusal(409, "The broker has accepted this row after all, so that nothing is left to requeue."),
  fate_unknown: refusal(409, "The broker may have accepted this row, and it cannot be proven that it has not."),
  payload_unreadable: refusal(409, "The row's message was sealed with other keys and cannot be read back."),
  running: refusal(409, "Another claim of this key runs until its lease ends."),
  uncertain: refusal(409, "The lease ended and nothing was recorded: whether the effect happened is not known here."),
  inputs_mismatch: refusal(409, "This key was claimed with other inputs; another effect needs another key."),
  epoch_settled: refusal(409, "This epoch was recorded or resolved already, and the first word stands."),
  replay_duplicate: refusal(409, "This request key or this effect is taken, for ever, by something else."),
  attempt_collision: refusal(409, "Another attempt at the same request won; its registration is in the answer."),
  replay_nonce_consumed: refusal(409, "This nonce has been spent; a nonce is good for one effect."),
  not_compensable: refusal(409, "Only a registration whose verification failed can be compensated."),
  request_stale: refusal(410, "The request is past its expires_at; nothing new was registered."),
  // Spaces. The first five codes of a commit are verdicts, or final: the same commit always gets the same answer.
  space_not_found: refusal(404, "There is no such space in this mesh."),
  session_not_found: refusal(404, "There is no such session in this space, or it is not yours."),
  branch_not_found: refusal(404, "There is no such branch in this space."),
  entity_not_found: refusal(404, "There is no such entity on this branch."),
  commit_not_found: refusal(404, "This session has no verdict for this localSeq."),
  session_revoked_error: named(
    "SessionRevokedError",
    refusal(403, "Another holder has opened this session since; its token is no longer current."),
  ),
  conflict_error: named(
    "ConflictError",
    refusal(409, "What the commit read has changed since; read again, rebuild it and commit it under a new localSeq."),
  ),
  dependency_rejected_error: named(
    "DependencyRejectedError",
    refusal(409, "The commit builds on one of this session that was rejected or never sent."),
  ),
  replay_mismatch_error: named(
    "ReplayMismatchError",
    refusal(409, "This localSeq stands for another commit of this session already."),
  ),
  local_seq_passed_error: named(
    "LocalSeqPassedError",
    refusal(409, "A higher localSeq of this session is resolved already, so that this one can never be."),
  ),
  send_rejected_error: named(
    "SendRejectedError",
    refusal(409, "One of the commit's sends can never be accepted, so nothing of the commit was."),
  ),
  patch_error: named("PatchError", refusal(422, "A patch does not fit the document that it found.")),
  basis_required_error: named(
    "BasisRequiredError",
    refusal(422, "A pending read needs basisSeq, the confirmed seq under the layers that it names."),
  ),
  dm_not_sealed: refusal(422, "This mesh takes direct messages only sealed; seal it, or let an owner set dm_policy."),
  commit_too_expensive: refusal(
    422,
    "The commit makes more work than one commit may; nothing of it was done. Split it into several.",
  ),
  pending_dependency_error: named(
    "PendingDependencyError",
    passing(422, "The commit builds on one of this session that has not arrived yet; send that one first.", "info"),
  ),
  branch_deleted: refusal(409, "The branch is deleted: it can be read, and not be written or branched from."),
  branch_exists: refusal(409, "A branch of this name exists or existed; names are used once."),
  branch_too_deep: refusal(409, "A branch has at most 8 branches above it."),
  seq_out_of_range: refusal(400, "A seq is above the space's own, so nothing can have been read there."),
  invalid_merge: refusal(400, "The merge does not name the base that the server finds; propose it again."),
  payload_too_large: refusal(413, "The body is larger than the limit."),
  unsupported_media_type: refusal(415, "Send application/json."),
  expectation_failed: refusal(417, "Nothing but Expect: 100-continue is understood here."),
  // The same request may succeed later.
  rate_limited: passing(
    429,
    "The mesh's budget for this window is spent; the same request succeeds in a later one.",
    "info",
  ),
  busy: passing(429, "Too many requests are in flight.", "warn"),
  daemon_busy: passing(429, "Too many requests are in flight at this daemon.", "warn"),
  too_many_streams: passing(429, "Too many event streams are open at this daemon.", "warn"),
  internal: passing(500, "Something is broken on our side; the log names it.", "error"),
  limiter_unavailable: passing(503, "The rate limiter cannot be reached; new sends wait, retries still succeed."),
  storage_unavailable: passing(503, "The store cannot be reached.", "error"),
  not_our_broker: passing(502, "What answers at the broker's address has not proven to be our broker.", "error"),
  broker_unreachable: passing(503, "The broker cannot be reached."),
  replay_surface_not_fit: passing(503, "The registrar is closed: its tables do not prove single use.", "error"),
  stopping: passing(503, "The server is stopping.", "info"),
  insufficient_storage: passing(
    507,
    "There is no room to store this, and nothing was consumed; try again once there is.",
    "error",
  ),
} as const satisfies Record<string, CatalogueEntry>;

export type ErrorCode = keyof typeof errorCatalogue;

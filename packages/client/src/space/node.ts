// Spaces for Node programs: a client over a link to a broker that reconnects by itself.

import { SpaceClient, type SpaceClientOptions } from "./space-client.ts";
import type { SigningOption, SpaceWire } from "./space-wire.ts";
import { type LinkWireOptions, openLinkWire } from "./wires/link-wire.ts";
import { signingWire } from "./wires/signing-wire.ts";

export type { BranchHandle, Off, PastBranch } from "./branch-handle.ts";
export type { Tx } from "./building/transaction.ts";
export type { PrefixSubscriber, Subscriber } from "./notifier.ts";
export type { EntityPage, LogEntry, LogPage, LogQuery, Query, Resolutions } from "./reader.ts";
export type { CommitResult, MergeRequest, MergeResult, Space } from "./space.ts";
export type { SpaceClient, SpaceClientOptions } from "./space-client.ts";
export type { ConflictDetail, ConflictError, SpaceError } from "./space-errors.ts";
export type { SpaceWire, WireEvents, WireOutcome } from "./space-wire.ts";
export type { EntityRecord } from "./sync-frame.ts";
export type { NotificationCause } from "./tiers/visible-changes.ts";
export type { TransactOptions, TransactResult } from "./transact.ts";

/** Starts connecting at once. Close the client to end it. */
export function connectSpaces(options: LinkWireOptions & SpaceClientOptions & SigningOption): SpaceClient {
  const wire = openLinkWire(options);
  const { loadSealing } = options.identity;
  return spacesOver(options.signWrites === true ? signingWire(wire, options.identity) : wire, {
    loadSealing,
    ...options,
  });
}

/** Spaces over a wire of the caller's own. */
export function spacesOver(wire: SpaceWire, options: SpaceClientOptions = {}): SpaceClient {
  return new SpaceClient(wire, options);
}

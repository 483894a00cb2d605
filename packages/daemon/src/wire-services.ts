// Puts the services together: who gets which port. Nothing is decided here.
import type { MeshConfig } from "@claudemesh/client/home";
import type { MemberKeys } from "@claudemesh/client/keys";
import type { Link } from "@claudemesh/client/link-contract";
import { nodeSha256 } from "@claudemesh/client/node-sha256";
import { loadSealer, type Sealer } from "@claudemesh/client/seal";
import { createSchemaCompiler } from "@claudemesh/http/validation";
import { createUlidGenerator } from "@claudemesh/protocol/ids";
import { sendRequestSchema } from "@claudemesh/protocol/messages/send-request";
import type { FailpointName } from "@claudemesh/storage/failpoint-names";
import type { Failpoints } from "@claudemesh/storage/failpoints";
import type { DaemonConfig } from "./config.ts";
import type { Chance, Clock, Log } from "./ports.ts";
import type { AcceptPorts } from "./services/accept-send.ts";
import { type LinkEvents, ManagedBrokerLink } from "./services/broker-link.ts";
import { Drain } from "./services/drain.ts";
import { Expiry } from "./services/expire.ts";
import { type FatalEnd, followLink } from "./services/follow-link.ts";
import { createHeartbeat, type Heartbeat } from "./services/heartbeat.ts";
import { keepHouse } from "./services/housekeeping.ts";
import type { LiveSettings } from "./services/live-settings.ts";
import { createMemberDirectory } from "./services/member-directory.ts";
import { loadNegotiatedLimits, type NegotiatedLimits } from "./services/negotiated-limits.ts";
import { InboxRebuild } from "./services/rebuild-inbox.ts";
import { Receiver } from "./services/receive.ts";
import { recoverOutbox } from "./services/recover.ts";
import { createRegularWork, type RegularWorkPorts } from "./services/regular-work.ts";
import type { HealthPorts } from "./services/report-health.ts";
import { createStorageGauge } from "./services/storage-gauge.ts";
import { StartRefused } from "./start-refused.ts";
import type { DaemonStores } from "./stores/sqlite/open-stores.ts";
import { systemChance } from "./system-chance.ts";
import type { SystemClock } from "./system-clock.ts";
import type { LocalApi } from "./transport/routes.ts";
import { wireControl } from "./wire-control.ts";
import { type OperatorWiring, wireOperator } from "./wire-operator.ts";

export type WiringOptions = {
  readonly config: DaemonConfig;
  readonly settings: Pick<LiveSettings, "current">;
  readonly mesh: MeshConfig;
  readonly keys: MemberKeys;
  readonly clock: SystemClock;
  readonly log: Log;
  readonly failpoints: Failpoints<FailpointName>;
  readonly stores: DaemonStores;
  readonly openLink: (events: LinkEvents) => Link;
  readonly onFatal: (end: FatalEnd) => void;
  /** Node's own where absent. */
  readonly chance?: Chance;
  /** Made from the keys where absent. */
  readonly sealer?: Sealer;
};

export type DaemonServices = {
  readonly localApi: (facts: Pick<LocalApi, "version" | "rotateToken" | "reload">) => LocalApi;
  /** Connects and begins to work. */
  readonly start: () => void;
  /** Lets open tries end for a moment, then ends the link and records what is left. */
  readonly stop: () => Promise<void>;
};

/** How long a stop waits for answers that are on their way, and then for the disk. */
const answerGraceMs = 1_000;
const recordGraceMs = 500;

export async function wireServices(options: WiringOptions): Promise<DaemonServices> {
  const { config, mesh, keys, clock, log, failpoints, stores } = options;
  const { outbox, inbox } = stores;
  const { backoff, requestTimeoutMs } = config.outbox;
  const ownPubkey = keys.ed25519.public_key;
  const { random, randomBytes, nextTurn } = options.chance ?? systemChance;
  const limits = loadLimits(stores, config);
  await recoverOutbox(outbox, clock.nowMs(), backoff, log);
  const sealer = options.sealer ?? (await loadSealer(keys));
  const link: ManagedBrokerLink = new ManagedBrokerLink({
    open: options.openLink,
    onStatus: (status) => follower.onStatus(status),
    onPush: (push) => follower.onPush(push),
    clock,
    random,
    backoff,
  });
  const gauge = createStorageGauge(outbox, () => options.settings.current.outbox.maxBytes, log);
  const directory = createMemberDirectory({ store: stores.members, link, log, requestTimeoutMs });
  const { nameOf } = directory;
  const { maxStreams } = config.ipc;
  const given = { mesh, stores, link, directory, limits, gauge, clock, log, maxStreams, requestTimeoutMs };
  const control = wireControl(given);
  const { events, onTryEnd, onStored, onNotOurBroker } = control;
  const { inlineBytes, expiredAtOrBefore } = limits;
  const drain = new Drain(
    { outbox, link, clock, random, log, failpoints, expiredAtOrBefore, onTryEnd },
    { backoff, requestTimeoutMs },
  );
  const expiry = new Expiry({ outbox, link, clock, log, limits, requestTimeoutMs });
  const receiver = new Receiver({ inbox, link, sealer, nameOf, clock, nextTurn, log, requestTimeoutMs, onStored });
  const restoring = { ownPubkey, inbox, link, sealer, nameOf, inlineBytes, clock, log, requestTimeoutMs };
  const rebuild = new InboxRebuild(restoring);
  const { noticeSleep } = clock;
  const { onFatal } = options;
  const work = { limits, directory, drain, expiry, receiver, rebuild, events };
  const followed = { ...work, noticeSleep, onNotOurBroker, log, onFatal };
  const follower = followLink(followed);
  const heart = createHeart(options, { noticeSleep, expiry, rebuild, linkStatus: link.status, log });
  const startedAt = clock.nowMs();
  const { store, onDue } = takeInRows(drain, expiry);
  const accept: AcceptPorts = {
    ownPubkey,
    directory,
    link,
    outbox,
    gauge,
    sealer,
    sha256: nodeSha256,
    nowMs: clock.nowMs,
    nextOutboxId: stores.nextOutboxId,
    nextClientMessageId: createUlidGenerator({ nowMs: clock.nowMs, randomBytes }),
    inlineBytes,
    store,
  };
  const checkSend = createSchemaCompiler()(sendRequestSchema);
  const member = { name: mesh.member_name, pubkey: ownPubkey };
  const ownName = mesh.member_name;
  const operator = wireOperator({ stores, accept, onDue, sealer, link, limits, clock, log, ownName, requestTimeoutMs });
  const drainStatus = () => drain.status;
  const observed = { linkStatus: link.status, drainStatus, streams: () => events.streams };
  const faults = failpoints.active ? { failpoints: failpoints.describe() } : {};
  const health: HealthPorts = { mesh, member, ...observed, outbox, inbox, gauge, startedAt, ...faults };
  return {
    localApi: (facts) => ({
      ...operator,
      ...control.api,
      ...facts,
      ...{ mesh, ownPubkey, accept, checkSend, outbox, inbox, directory, health },
    }),
    start: () => {
      link.start();
      heart.start();
    },
    stop: () => {
      heart.stop();
      return endWork(clock, drain, receiver, link);
    },
  };
}

function createHeart(options: WiringOptions, work: Omit<RegularWorkPorts, "keepHouse">): Heartbeat {
  const { settings, clock, log, stores } = options;
  const { outbox, inbox } = stores;
  const houseKeeping = (isStopping: () => boolean) => {
    const { doneRetentionDays } = settings.current.outbox;
    const retention = { doneRetentionDays, inboxRetentionDays: settings.current.inbox.retentionDays };
    return keepHouse({ outbox, inbox, clock, log }, retention, isStopping);
  };
  return createHeartbeat(clock, log, createRegularWork({ ...work, keepHouse: houseKeeping }));
}

/** Answers that are on their way may still come; then the link ends, and what it cut off is recorded. */
async function endWork(clock: Clock, drain: Drain, receiver: Receiver, link: ManagedBrokerLink): Promise<void> {
  drain.stop();
  receiver.stop();
  await within(clock, answerGraceMs, drain.settled());
  await link.close();
  await within(clock, recordGraceMs, Promise.all([drain.settled(), receiver.settled()]));
}

function loadLimits(stores: DaemonStores, config: DaemonConfig): NegotiatedLimits {
  const limits = loadNegotiatedLimits(stores.negotiated, config.outbox.maxAgeHoursOverride);
  if (!("ok" in limits)) return limits;
  const { error, overrideHours, limitHours } = limits;
  const message = `${error}: [outbox] max_age_hours_override is ${overrideHours}, and the broker's window allows ${limitHours}.`;
  throw new StartRefused("outbox_max_age_above_dedupe_window", message);
}

async function within(clock: Clock, limitMs: number, work: Promise<unknown>): Promise<void> {
  const { promise: limit, resolve } = Promise.withResolvers<void>();
  const timer = clock.setTimer(limitMs, resolve);
  await Promise.race([work, limit]);
  timer.cancel();
}

/** Whatever comes into the outbox is carried by the drain and, should it get too old for that, ended by the expiry. */
function takeInRows(drain: Drain, expiry: Expiry): Pick<AcceptPorts, "store"> & Pick<OperatorWiring, "onDue"> {
  return {
    store: async (row) => {
      const known = await drain.accept(row);
      if (known === undefined) expiry.stored(row.enqueuedAt);
      return known;
    },
    onDue: (enqueuedAt) => {
      expiry.stored(enqueuedAt);
      drain.wake();
    },
  };
}

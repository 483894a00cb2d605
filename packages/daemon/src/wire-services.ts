// Puts the services together: who gets which port. Nothing is decided here.
import type { MeshConfig } from "@claudemesh/client/home";
import type { MemberKeys } from "@claudemesh/client/keys";
import type { Link } from "@claudemesh/client/link-contract";
import { loadSealer, type Sealer } from "@claudemesh/client/seal";
import { createSchemaCompiler } from "@claudemesh/http/validation";
import { sendRequestSchema } from "@claudemesh/protocol/messages/send-request";
import type { FailpointName } from "@claudemesh/storage/failpoint-names";
import type { Failpoints } from "@claudemesh/storage/failpoints";
import type { DaemonConfig } from "./config.ts";
import type { Chance, Clock, Log } from "./ports.ts";
import { type LinkEvents, ManagedBrokerLink } from "./services/broker-link.ts";
import { DestinationDirectory } from "./services/destination-directory.ts";
import { Drain } from "./services/drain.ts";
import { Expiry } from "./services/expire.ts";
import { type FatalEnd, followLink } from "./services/follow-link.ts";
import { createHeartbeat, type Heartbeat } from "./services/heartbeat.ts";
import { keepHouse } from "./services/housekeeping.ts";
import type { LiveSettings } from "./services/live-settings.ts";
import { Membership } from "./services/membership.ts";
import { loadNegotiatedLimits, type NegotiatedLimits } from "./services/negotiated-limits.ts";
import { InboxRebuild, type RebuildPorts } from "./services/rebuild-inbox.ts";
import { type ReceivePorts, Receiver } from "./services/receive.ts";
import { createRegularWork, type RegularWorkPorts } from "./services/regular-work.ts";
import type { FindingsPorts } from "./services/report-findings.ts";
import type { HealthPorts } from "./services/report-health.ts";
import { resumeOutbox } from "./services/resume-outbox.ts";
import { createStorageGauge, type GaugePorts } from "./services/storage-gauge.ts";
import { StartRefused } from "./start-refused.ts";
import type { DaemonStores } from "./stores/sqlite/open-stores.ts";
import { systemChance } from "./system-chance.ts";
import type { SystemClock } from "./system-clock.ts";
import type { LocalApi } from "./transport/routes.ts";
import { wireControl } from "./wire-control.ts";
import { wireOperator } from "./wire-operator.ts";
import { wirePeers } from "./wire-peers.ts";
import { wayNow, wireSending } from "./wire-sending.ts";

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
  /** Keeps what brokers tell of themselves. */
  readonly onBrokers?: (urls: readonly string[]) => void;
  /** Node's own where absent. */
  readonly chance?: Chance;
  /** Made from the keys where absent. */
  readonly sealer?: Sealer;
};

/** Where the daemon's files are, and its broker. */
export type FindingsPlace = Pick<FindingsPorts, "folder" | "brokerUrl">;

export type DaemonServices = {
  readonly localApi: (
    facts: Pick<LocalApi, "version" | "rotateToken" | "reload"> & { readonly place: FindingsPlace },
  ) => LocalApi;
  /** Where the link is; undefined where that is not known. */
  readonly brokerUrl: () => string | undefined;
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
  const { outbox, inbox, readers } = stores;
  const { backoff, requestTimeoutMs } = config.outbox;
  const ownPubkey = keys.ed25519.public_key;
  const { random, randomBytes, nextTurn } = options.chance ?? systemChance;
  const limits = loadLimits(stores, config);
  await resumeOutbox(outbox, clock.nowMs(), backoff, log);
  const sealer = options.sealer ?? (await loadSealer(keys));
  const link: ManagedBrokerLink = new ManagedBrokerLink({
    open: options.openLink,
    onStatus: (status) => follower.onStatus(status),
    onPush: (push) => follower.onPush(push),
    clock,
    random,
    backoff,
  });
  const gauge = createGauge(options, (fill) => events.publish("outbox_pressure_high", fill));
  const onKeyChanged = (change: object) => events.publish("peer_key_changed", change);
  const { nowMs, noticeSleep } = clock;
  const known = { stores, link, ownPubkey, nowMs, log, requestTimeoutMs, onKeyChanged };
  const { directory, pins, nameOf } = wirePeers(known);
  const destinations = new DestinationDirectory({ link, clock });
  const { maxStreams } = config.ipc;
  const membership = new Membership({ mesh: mesh.name, store: stores.membership, clock, log });
  const peers = { nameOf, pins, destinations, membership };
  const ownParts = { mesh, stores, link, limits, gauge, clock, log };
  const control = wireControl({ ...ownParts, ...peers, maxStreams, requestTimeoutMs });
  const { events, draining, onDespiteForgotten, onStored, onNotOurBroker } = control;
  const { inlineBytes, expiredAtOrBefore } = limits;
  const drain = new Drain(
    { outbox, link, clock, random, log, failpoints, expiredAtOrBefore, ...draining },
    { backoff, requestTimeoutMs },
  );
  const expiry = new Expiry({ outbox, link, clock, log, limits, requestTimeoutMs });
  const { receiver, rebuild } = wireReceiving(options, { link, sealer, nameOf, inlineBytes, nextTurn, onStored });
  const { onFatal, onBrokers = () => undefined } = options;
  const told = { limits, directory, pins, nameOf, membership, destinations, drain, expiry, receiver, rebuild, events };
  const followed = { ...told, noticeSleep, onNotOurBroker, log, onFatal, onBrokers };
  const follower = followLink(followed);
  const heart = createHeart(options, { noticeSleep, expiry, rebuild, linkStatus: link.status, log });
  const startedAt = nowMs();
  const reached = { ownPubkey, directory, pins, destinations, membership, link, outbox, gauge, sealer, inlineBytes };
  const { enqueue, onDue } = wireSending({ ...reached, drain, expiry, clock, randomBytes, stores });
  const checkSend = createSchemaCompiler()(sendRequestSchema);
  const ownName = mesh.member_name;
  const way = () => wayNow({ link, drain, membership });
  const operating = { stores, enqueue, onDue, sealer, link, limits, clock, log, ownName, nameOf, requestTimeoutMs };
  const operator = wireOperator({ ...operating, way, onDespiteForgotten });
  const whoAmI = { mesh, member: { name: ownName, pubkey: ownPubkey }, startedAt };
  const health = observeHealth({ ...whoAmI, membership, link, drain, events, outbox, inbox, gauge }, failpoints);
  return {
    localApi: ({ place, ...facts }) => ({
      ...operator,
      ...control.api,
      ...facts,
      ...{ mesh, ownPubkey, enqueue, checkSend, outbox, inbox, readers, nowMs, directory, nameOf, pins, health },
      findings: { health, outbox, link, clock, ...place },
      reconnect: link.reconnect,
    }),
    brokerUrl: () => link.route()?.current,
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

type ReceivingPorts = Pick<RebuildPorts, "nameOf" | "inlineBytes"> &
  Pick<ReceivePorts, "nextTurn" | "onStored"> & { readonly link: ManagedBrokerLink; readonly sealer: Sealer };

function wireReceiving({ config, keys, clock, log, stores: { inbox } }: WiringOptions, ports: ReceivingPorts) {
  const ownPubkey = keys.ed25519.public_key;
  const common = { ...ports, ownPubkey, inbox, clock, log, requestTimeoutMs: config.outbox.requestTimeoutMs };
  return { receiver: new Receiver(common), rebuild: new InboxRebuild(common) };
}

function createGauge({ settings, clock, log, stores }: WiringOptions, onPressure: GaugePorts["onPressure"]) {
  const maxBytes = () => settings.current.outbox.maxBytes;
  return createStorageGauge({ outbox: stores.outbox, maxBytes, clock, log, onPressure });
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

type ObservedParts = Omit<HealthPorts, "linkStatus" | "linkRoute" | "drainMode" | "streams" | "failpoints"> & {
  readonly link: ManagedBrokerLink;
  readonly drain: Drain;
  readonly events: { readonly streams: number };
};

/** What the status route reads; fault points are shown only where some are set. */
function observeHealth({ link, drain, events, ...parts }: ObservedParts, failpoints: Failpoints<FailpointName>) {
  const faults = failpoints.active ? { failpoints: failpoints.describe() } : {};
  const health: HealthPorts = {
    ...parts,
    linkStatus: link.status,
    linkRoute: link.route,
    drainMode: () => drain.mode,
    streams: () => events.streams,
    ...faults,
  };
  return health;
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

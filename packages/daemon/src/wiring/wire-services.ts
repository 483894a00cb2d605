// Puts the services together: which service gets which port. Nothing is decided here.
import type { MeshConfig } from "@claudemesh/client/home";
import type { Link } from "@claudemesh/client/internal/link-contract";
import type { MemberKeys } from "@claudemesh/client/keys";
import { loadSealer, type Sealer } from "@claudemesh/client/seal";
import { createSchemaCompiler } from "@claudemesh/http/validation";
import { sendRequestSchema } from "@claudemesh/protocol/messages/send-request";
import type { FailpointName } from "@claudemesh/storage/failpoint-names";
import type { Failpoints } from "@claudemesh/storage/failpoints";
import type { DaemonConfig } from "../config.ts";
import type { Chance, Clock, Log } from "../ports.ts";
import { type LinkEvents, ManagedBrokerLink } from "../services/broker-link.ts";
import { DestinationDirectory } from "../services/destination-directory.ts";
import { Drain, type DrainPorts } from "../services/drain.ts";
import { Expiry } from "../services/expire.ts";
import { type FatalEnd, followLink } from "../services/follow-link.ts";
import type { LiveSettings } from "../services/live-settings.ts";
import { createMemberDirectory, type MemberDirectoryPorts } from "../services/member-directory.ts";
import { Membership } from "../services/membership.ts";
import { loadNegotiatedLimits, type NegotiatedLimits } from "../services/negotiated-limits.ts";
import { type NameOf, PeerPins, type PeerPinsPorts } from "../services/peer-pins.ts";
import { type PeriodicTasks, type PeriodicTasksPorts, startPeriodicTasks } from "../services/periodic-tasks.ts";
import { InboxRebuild, type RebuildPorts } from "../services/rebuild-inbox.ts";
import { type ReceivePorts, Receiver } from "../services/receive.ts";
import type { FindingsPorts } from "../services/report-findings.ts";
import type { HealthPorts } from "../services/report-health.ts";
import { resumeOutbox } from "../services/resume-outbox.ts";
import { runRetention } from "../services/retention.ts";
import { createStorageGauge, type GaugePorts } from "../services/storage-gauge.ts";
import { StartRefused } from "../start-refused.ts";
import type { DaemonStores } from "../stores/sqlite/open-stores.ts";
import { systemChance } from "../system-chance.ts";
import type { SystemClock } from "../system-clock.ts";
import type { LocalApi } from "../transport/routes.ts";
import { wireControl } from "./wire-control.ts";
import { wireOperator } from "./wire-operator.ts";
import { wireSending } from "./wire-sending.ts";

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
  /** Brokers have announced these addresses of the mesh. */
  readonly onBrokers?: (urls: readonly string[]) => void;
  /** Node's own where absent. */
  readonly chance?: Chance;
  /** Made from the keys where absent. */
  readonly sealer?: Sealer;
};

/** Where the daemon's files are, and its broker. */
export type FindingsFacts = Pick<FindingsPorts, "folder" | "brokerUrl">;

export type DaemonServices = {
  readonly localApi: (
    facts: Pick<LocalApi, "version" | "rotateToken" | "reload"> & { readonly findings: FindingsFacts },
  ) => LocalApi;
  /** The address of the broker that the link is connected to. Undefined where that is not known. */
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
  const { config, mesh, keys, clock, log, stores } = options;
  const { outbox, inbox, readers } = stores;
  const { backoff, requestTimeoutMs } = config.outbox;
  const { random, randomBytes, nextTurn } = options.chance ?? systemChance;
  const limits = loadLimits(stores, config);
  await resumeOutbox(outbox, clock.nowMs(), backoff, log);
  const sealer = options.sealer ?? (await loadSealer(keys));
  // The link comes before the services that follow it. It reports nothing until it is started, when all of them exist.
  const link: ManagedBrokerLink = new ManagedBrokerLink({
    open: options.openLink,
    onStatus: (status) => follower.onStatus(status),
    onPush: (push) => follower.onPush(push),
    clock,
    random,
    backoff,
  });
  const ownName = mesh.member_name;
  const ownPubkey = keys.ed25519.public_key;
  const { nowMs, noticeSleep } = clock;
  const gauge = createGauge(options, (fill) => events.publish("outbox_pressure_high", fill));
  const base = {
    mesh,
    ownName,
    ownPubkey,
    stores,
    outbox,
    link,
    limits,
    gauge,
    sealer,
    clock,
    nowMs,
    log,
    requestTimeoutMs,
  };
  const members = wireMembers({ ...base, onKeyChanged: (change) => events.publish("peer_key_changed", change) });
  const destinations = new DestinationDirectory({ link, clock });
  const membership = new Membership({ mesh: mesh.name, store: stores.membership, clock, log });
  const recipients = { ...members, destinations, membership };
  const control = wireControl({ ...base, ...recipients, maxStreams: config.ipc.maxStreams });
  const { events } = control;
  const drain = createDrain(options, { ...control.drainEvents, link, random, limits });
  const expiry = new Expiry({ ...base });
  const { receiver, rebuild } = wireReceiving({ ...base, ...members, ...control, nextTurn });
  const follower = followLink({
    ...recipients,
    ...{ limits, drain, expiry, receiver, rebuild, events, noticeSleep, log },
    onNotOurBroker: control.onNotOurBroker,
    onFatal: options.onFatal,
    onBrokers: options.onBrokers ?? (() => undefined),
  });
  const sending = wireSending({ ...base, ...recipients, drain, expiry, randomBytes });
  const { enqueue } = sending;
  const operator = wireOperator({ ...base, ...sending, ...control, nameOf: members.nameOf });
  const health = createHealthPorts(options, { membership, link, drain, events, gauge });
  const checkSend = createSchemaCompiler()(sendRequestSchema);
  let periodicTasks: PeriodicTasks | undefined;
  return {
    localApi: ({ findings, ...facts }) => ({
      ...operator,
      ...control.api,
      ...members,
      ...facts,
      ...{ mesh, ownPubkey, enqueue, checkSend, outbox, inbox, readers, nowMs, health },
      findings: { health, outbox, link, clock, ...findings },
      reconnect: link.reconnect,
    }),
    brokerUrl: () => link.route()?.current,
    start: () => {
      link.start();
      periodicTasks = startTasks(options, { expiry, rebuild, link });
    },
    stop: () => {
      periodicTasks?.stop();
      return endWork(clock, drain, receiver, link);
    },
  };
}

type MembersWiring = Omit<MemberDirectoryPorts, "store" | "onListed"> &
  Omit<PeerPinsPorts, "store"> & { readonly stores: Pick<DaemonStores, "members" | "pins"> };

/** What knows the members of the mesh: the broker's list of them, and the keys that names are pinned to here. */
function wireMembers({ stores, ...wiring }: MembersWiring) {
  const pins = new PeerPins({ ...wiring, store: stores.pins });
  const onListed = () => pins.compare(directory);
  const directory = createMemberDirectory({ ...wiring, store: stores.members, onListed });
  /** The name that a message is shown with, and never one that would be read as another member's. */
  const nameOf: NameOf = (pubkey, remembered) => pins.nameOf(directory, pubkey, remembered);
  return { directory, pins, nameOf };
}

type DrainParts = Pick<DrainPorts, "link" | "random" | "onTryEnd" | "onStoredAnew"> & {
  readonly limits: NegotiatedLimits;
};

function createDrain({ config, stores, clock, log, failpoints }: WiringOptions, { limits, ...parts }: DrainParts) {
  const { backoff, requestTimeoutMs } = config.outbox;
  const { expiredAtOrBefore } = limits;
  const ports = { ...parts, outbox: stores.outbox, clock, log, failpoints, expiredAtOrBefore };
  return new Drain(ports, { backoff, requestTimeoutMs });
}

type ReceivingWiring = Omit<RebuildPorts & ReceivePorts, "inbox" | "inlineBytes"> & {
  readonly stores: Pick<DaemonStores, "inbox">;
  readonly limits: NegotiatedLimits;
};

function wireReceiving({ stores, limits, ...wiring }: ReceivingWiring) {
  const ports = { ...wiring, inbox: stores.inbox, inlineBytes: limits.inlineBytes };
  return { receiver: new Receiver(ports), rebuild: new InboxRebuild(ports) };
}

function createGauge({ settings, clock, log, stores }: WiringOptions, onPressure: GaugePorts["onPressure"]) {
  const maxBytes = () => settings.current.outbox.maxBytes;
  return createStorageGauge({ outbox: stores.outbox, maxBytes, clock, log, onPressure });
}

type TaskParts = Pick<PeriodicTasksPorts, "expiry" | "rebuild"> & { readonly link: ManagedBrokerLink };

function startTasks(options: WiringOptions, { expiry, rebuild, link }: TaskParts): PeriodicTasks {
  const { settings, clock, log, stores } = options;
  return startPeriodicTasks({
    ...{ noticeSleep: clock.noticeSleep, expiry, rebuild, clock, log },
    linkStatus: link.status,
    // By the settings as they are now, which may have been reloaded.
    applyRetention: (isStopping) => {
      const { outbox, inbox } = settings.current;
      const retention = { doneRetentionDays: outbox.doneRetentionDays, inboxRetentionDays: inbox.retentionDays };
      return runRetention({ outbox: stores.outbox, inbox: stores.inbox, clock, log }, retention, isStopping);
    },
  });
}

type ReportedServices = Pick<HealthPorts, "membership" | "gauge"> & {
  readonly link: ManagedBrokerLink;
  readonly drain: Drain;
  readonly events: { readonly streams: number };
};

/** What the status route reads. Fault points are shown only where some are set. */
function createHealthPorts(
  { mesh, keys, stores, clock, failpoints }: WiringOptions,
  { membership, gauge, link, drain, events }: ReportedServices,
): HealthPorts {
  return {
    mesh,
    member: { name: mesh.member_name, pubkey: keys.ed25519.public_key },
    startedAt: clock.nowMs(),
    outbox: stores.outbox,
    inbox: stores.inbox,
    membership,
    gauge,
    linkStatus: link.status,
    linkRoute: link.route,
    drainMode: () => drain.mode,
    streams: () => events.streams,
    ...(failpoints.active ? { failpoints: failpoints.describe() } : {}),
  };
}

/** Waits a moment for answers that are on their way, then ends the link and records the tries that this cut off. */
async function endWork(clock: Clock, drain: Drain, receiver: Receiver, link: ManagedBrokerLink): Promise<void> {
  drain.stop();
  receiver.stop();
  await within(clock, answerGraceMs, drain.settled());
  await link.close();
  await within(clock, recordGraceMs, Promise.all([drain.settled(), receiver.settled()]));
}

function loadLimits(stores: DaemonStores, config: DaemonConfig): NegotiatedLimits {
  const loaded = loadNegotiatedLimits(stores.negotiated, config.outbox.maxAgeHoursOverride);
  if (loaded.ok) return loaded.limits;
  const { error, overrideHours, limitHours } = loaded;
  const message = `${error}: [outbox] max_age_hours_override is ${overrideHours}, and the broker's window allows ${limitHours}.`;
  throw new StartRefused("outbox_max_age_above_dedupe_window", message);
}

async function within(clock: Clock, limitMs: number, work: Promise<unknown>): Promise<void> {
  const { promise: limit, resolve } = Promise.withResolvers<void>();
  const timer = clock.setTimer(limitMs, resolve);
  await Promise.race([work, limit]);
  timer.cancel();
}

// The backend of brokers side by side: PostgreSQL for everything that must last, Redis for the limiter.
import { createHmac } from "node:crypto";
import { resolve } from "node:path";
import { createPostgresBrokersStore } from "@claudemesh/members/brokers-postgres";
import { createPostgresMembersStore, postgresMembersMigrations } from "@claudemesh/members/postgres";
import { ensureBrokerSeed } from "@claudemesh/members/postgres-broker-key";
import { findRevokedSince } from "@claudemesh/members/postgres-side-by-side";
import {
  createPostgresMessagesStore,
  findWaitingRecipients,
  type MessagesPools,
  postgresMessagesMigrations,
} from "@claudemesh/messages/postgres";
import { acceptCommitSends } from "@claudemesh/messages/postgres-sends";
import { RedisConnection } from "@claudemesh/messages/redis";
import { createRedisByteLedger } from "@claudemesh/messages/redis-byte-ledger";
import { createRedisLimiter } from "@claudemesh/messages/redis-limiter";
import { type LimitOptions, limitAccepts } from "@claudemesh/messages/services/limit-accepts";
import { createPostgresOnceStore } from "@claudemesh/registrar/once-postgres";
import { createPostgresRegistrarStore } from "@claudemesh/registrar/postgres";
import { postgresRegistrarMigrations } from "@claudemesh/registrar/postgres-migrations";
import { createPostgresRegistrarRules } from "@claudemesh/registrar/postgres-rules";
import type { SpacesStore } from "@claudemesh/spaces/ports";
import { createPostgresSpacesStore, postgresSpacesMigrations, type SpacesPools } from "@claudemesh/spaces/postgres";
import { createPostgresSpaceRules } from "@claudemesh/spaces/postgres-rules";
import { type CommitHooks, createCommitHooks } from "@claudemesh/storage/commit-hooks";
import type { Migration } from "@claudemesh/storage/migrations";
import { openPostgres, type Postgres } from "@claudemesh/storage/postgres";
import { migratePostgres } from "@claudemesh/storage/postgres-migrations";
import type { RuleStore } from "@claudemesh/storage/row-rules";
import { mintBrokerSeed } from "../broker-key.ts";
import { locationOf } from "../config.ts";
import { hidingPasswordOf } from "../shown-address.ts";
import type { Backend, BackendSurroundings } from "./backend.ts";
import { createQuietLog } from "./quiet-log.ts";

/**
 * For transactions that may wait for a mesh's lock, for those that may wait for a space's or for a queue's, for look-ups that
 * precede every request, and for everything else. docs/scale.md counts with their sum.
 */
const connectionsAccepting = 8;
const connectionsCommitting = 8;
const connectionsQueueing = 4;
const connectionsLooking = 4;
const connectionsCommon = 6;
const sweepSecondsDefault = 5;
/** A broker that starts while Redis is away serves all the same, and is ready once Redis is back. */
const firstContactMs = 2_000;

export function postgresMigrations(): Migration[] {
  return [
    ...postgresMembersMigrations(),
    ...postgresMessagesMigrations(),
    ...postgresRegistrarMigrations(),
    ...postgresSpacesMigrations(),
  ];
}

export async function openPostgresBackend(
  surroundings: BackendSurroundings,
  url: string,
  redisUrl: string,
): Promise<Backend> {
  const { config, failpoints, log } = surroundings;
  const onIdleError = (error: Error) => log.warn({ event: "postgres_connection_lost", err: error }, error.message);
  const accepting = openPostgres({ url, poolSize: connectionsAccepting, genericPlans: true, onIdleError });
  const committing = openPostgres({ url, poolSize: connectionsCommitting, genericPlans: true, onIdleError });
  const looking = openPostgres({ url, poolSize: connectionsLooking, genericPlans: true, onIdleError });
  const queueing = openPostgres({ url, poolSize: connectionsQueueing, genericPlans: true, onIdleError });
  const common = openPostgres({ url, poolSize: connectionsCommon, onIdleError });
  const closePools = async () => {
    await Promise.all([accepting, committing, looking, queueing, common].map((pool) => pool.close()));
  };
  let brokerSeed: string;
  try {
    await migratePostgres(common, postgresMigrations());
    brokerSeed = await ensureBrokerSeed(common, mintBrokerSeed);
  } catch (error) {
    await closePools();
    throw error;
  }
  const redis = await openRedis(surroundings, redisUrl);
  const hooks = createCommitHooks(failpoints);
  const pools = { accepting, looking, queueing, common };
  const { messages, limiter, limits, counts } = createMessages(surroundings, pools, redis, hooks);
  const members = createPostgresMembersStore(common, looking);
  return {
    members,
    messages,
    once: createPostgresOnceStore(common, hooks),
    registrar: createPostgresRegistrarStore(common, { looking, hooks }),
    spaces: createPostgresSpaces({ committing, common }, hooks),
    otherRules: postgresRules(common),
    sendLimits: { limiter, limits },
    byteLedger: createRedisByteLedger(redis),
    location: locationOf({ kind: "postgres", url }),
    adminTokenFile: resolve(config.adminTokenFile ?? "broker.admin-token"),
    brokerSeed,
    brokers: createPostgresBrokersStore(common),
    // The disk is its server's.
    proveRoom: async () => undefined,
    writeLimiter: () => limiter.available(),
    // Brokers side by side agree on the time by their hosts' clocks.
    nowMs: Date.now,
    counts: () => ({ ...counts }),
    sideBySide: {
      redisUrl,
      sweepIntervalMs: (config.deliverySweepSeconds ?? sweepSecondsDefault) * 1000,
      findWaiting: (recipients) => findWaitingRecipients(common, recipients),
      findRevokedSince: (sinceMs) => findRevokedSince(common, sinceMs),
      // Brokers of a store share its key, and no other program has it. The key of their signals is derived from it.
      signalSecret: createHmac("sha256", brokerSeed).update("claudemesh-signals-1").digest(),
    },
    close: async () => {
      redis.close();
      await closePools();
    },
  };
}

/** Of every package but messages, which brings its own with its store. */
export function postgresRules(postgres: Postgres): RuleStore[] {
  return [createPostgresRegistrarRules(postgres), createPostgresSpaceRules(postgres)];
}

async function openRedis({ log }: BackendSurroundings, url: string): Promise<RedisConnection> {
  const contact = Promise.withResolvers<void>();
  const shown = hidingPasswordOf(url);
  const quiet = createQuietLog((error, times) =>
    log.warn({ event: "redis_unavailable", err: shown(error), times }, "Redis cannot be reached"),
  );
  const redis = new RedisConnection({ url, name: "claudemesh-limiter", onProblem: quiet, onReady: contact.resolve });
  const giveUp = setTimeout(contact.resolve, firstContactMs);
  await contact.promise;
  clearTimeout(giveUp);
  return redis;
}

/** Sends of commits are accepted in their transaction. */
export function createPostgresSpaces(pools: SpacesPools, hooks?: CommitHooks): SpacesStore {
  return createPostgresSpacesStore(pools, {
    acceptSends: acceptCommitSends,
    hooks,
  });
}

function createMessages(
  { config, log }: BackendSurroundings,
  pools: MessagesPools,
  redis: RedisConnection,
  hooks: CommitHooks | undefined,
) {
  const store = createPostgresMessagesStore(pools, hooks);
  const onFailure = createQuietLog((error, times) =>
    log.warn({ event: "limiter_unavailable", err: error, times }, "the limiter cannot be asked"),
  );
  const limiter = createRedisLimiter(redis, { rate: config.rateLimit, onFailure });
  const counts = { limiterPassedUncounted: 0, limiterSpentThenRefused: 0 };
  const logPassed = createQuietLog((_, times) =>
    log.warn({ event: "limiter_open_passed", times }, "new sends passed without the limiter"),
  );
  const limits: LimitOptions = {
    whenUnavailable: config.limiterOpen ? "pass" : "refuse",
    onPassedUncounted: () => {
      counts.limiterPassedUncounted += 1;
      logPassed(undefined);
    },
    onSpentThenRefused: () => {
      counts.limiterSpentThenRefused += 1;
    },
  };
  const accepts = limitAccepts(store.accepts, limiter, limits);
  return { messages: { ...store, accepts }, limiter, limits, counts };
}

// Registrations without any transport: the registrar's services on the broker's own backend, called by so many callers in
// this process, each with one request outstanding. Approvals are made by the same services and are not timed. First
// argument: the store as JSON.
import process from "node:process";
import { register } from "@claudemesh/registrar/services/register";
import { createSignatureCheck } from "@claudemesh/registrar/services/signature-check";
import { drawSeededId } from "../broker/seeded-ids.ts";
import { openStore, type StoreLocation } from "../broker/store-location.ts";
import { createClientIds } from "../load/client-ids.ts";
import { Latencies } from "../load/latencies.ts";
import { serveOrders } from "../processes/orders.ts";
import { approveAll, ownerOf, registrarPorts } from "./bench-registration.ts";
import { idsOf, requestOf } from "./bench-request.ts";
import { approvalsPerStep, type RegistrarOrder, type RegistrarResult } from "./registrar-order.ts";

const [locationJson] = process.argv.slice(2);
if (locationJson === undefined) throw new Error("give the store as JSON");
const { registrar: store } = await openStore(JSON.parse(locationJson) as StoreLocation);
const ports = registrarPorts(store);
const nextId = createClientIds("time_ordered");

type Request = ReturnType<typeof requestOf>;
type Source = {
  /** Untimed, before each step. */
  readonly prepare: () => Promise<void>;
  /** Undefined: the step is over. */
  readonly next: () => Request | undefined;
};

function newRequests(order: RegistrarOrder): Source {
  let ready: Request[] = [];
  return {
    prepare: async () => {
      const wanted = Array.from({ length: approvalsPerStep }, () => idsOf(nextId()));
      const isSignedBy = order.approvedElsewhere ? createSignatureCheck() : ports.isSignedBy;
      ready = (await approveAll({ store, isSignedBy }, order.mesh, wanted)).reverse();
    },
    next: () => ready.pop(),
  };
}

function retries(among: NonNullable<RegistrarOrder["retryAmong"]>): Source {
  return {
    prepare: async () => undefined,
    next: () => requestOf(idsOf(drawSeededId("time_ordered", among)), "a-nonce-that-is-not-looked-at"),
  };
}

async function registerForAWhile(order: RegistrarOrder): Promise<RegistrarResult> {
  const { callers, durationMs, retryAmong } = order;
  const source = retryAmong === undefined ? newRequests(order) : retries(retryAmong);
  const expected = retryAmong !== undefined;
  const owner = ownerOf(order.mesh);
  const latencies = new Latencies();
  let busyMs = 0;
  while (busyMs < durationMs) {
    await source.prepare();
    const startedAtMs = performance.now();
    const endsAtMs = startedAtMs + durationMs - busyMs;
    const work = Array.from({ length: callers }, async () => {
      for (let nowMs = performance.now(); nowMs < endsAtMs; ) {
        const request = source.next();
        if (request === undefined) return;
        const { duplicate, stored } = await register(ports, owner, request);
        if (duplicate !== expected || stored.verification?.state !== "registered_closed") {
          throw new Error(
            `a request was answered ${duplicate ? "as a retry" : "as new"}, not verified or not as wanted`,
          );
        }
        const answeredAtMs = performance.now();
        latencies.add(answeredAtMs - nowMs);
        nowMs = answeredAtMs;
      }
    });
    await Promise.all(work);
    busyMs += performance.now() - startedAtMs;
  }
  return { answered: latencies.count, perSecond: latencies.count / (busyMs / 1_000), ...latencies.figures() };
}

serveOrders<RegistrarOrder, RegistrarResult>(registerForAWhile);

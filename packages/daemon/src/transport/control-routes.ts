// Routes about the daemon itself: how it is, what it speaks, what it counts, what happens, and its token.

import type { Reloaded } from "@claudemesh/client/daemon";
import { protocolVersion } from "@claudemesh/protocol/wire/frames";
import type { TokenRotation } from "../files/local-token.ts";
import type { EventHub } from "../services/event-hub.ts";
import { type MetricsPorts, renderMetrics } from "../services/render-metrics.ts";
import { type CompatPorts, reportCompat } from "../services/report-compat.ts";
import { type FindingsPorts, reportFindings } from "../services/report-findings.ts";
import { type HealthPorts, reportHealth } from "../services/report-health.ts";
import { openEventStream } from "./event-route.ts";
import { emptyBody, eventsQuery, noQuery } from "./queries.ts";
import { ok, type Route } from "./route.ts";

export type ControlApi = {
  readonly version: string;
  readonly mesh: { readonly id: string; readonly name: string };
  readonly ownPubkey: string;
  readonly health: HealthPorts;
  readonly findings: FindingsPorts;
  readonly compat: CompatPorts;
  readonly metrics: MetricsPorts;
  readonly events: EventHub;
  readonly rotateToken: () => TokenRotation;
  readonly reload: () => Reloaded;
  readonly reconnect: () => void;
};

export const controlRoutes: readonly Route<ControlApi>[] = [
  {
    method: "GET",
    url: "/v1/events",
    summary: "What happens, as server-sent events: messages, peers, the broker, the outbox",
    schema: { querystring: eventsQuery },
    headers: { "Last-Event-ID": "Go on after this event: no message that came since is missed." },
    stream: (api, request, reply) => openEventStream(api.events, request, reply),
  },
  {
    method: "GET",
    url: "/v1/health",
    summary: "How the daemon is doing",
    schema: { querystring: noQuery },
    handle: (api) => ok(reportHealth(api.health)),
  },
  {
    method: "GET",
    url: "/v1/findings",
    summary: "What is wrong here and in the mesh, with the command that mends it; asks the broker",
    schema: { querystring: noQuery },
    handle: async (api) => ok({ ...(await reportFindings(api.findings)) }),
  },
  {
    method: "GET",
    url: "/v1/version",
    summary: "Who this daemon is",
    schema: { querystring: noQuery },
    handle: ({ version, mesh, ownPubkey, health: { membership } }) =>
      ok({
        name: "claudemesh-daemon",
        version,
        protocol: protocolVersion,
        mesh: mesh.name,
        mesh_id: mesh.id,
        member_pubkey: ownPubkey,
        pid: process.pid,
        ...(membership.ended === undefined ? {} : { membership_ended_at: membership.ended.at }),
      }),
  },
  {
    method: "GET",
    url: "/v1/compat",
    summary: "What daemon and broker have agreed on",
    schema: { querystring: noQuery },
    handle: (api) => ok(reportCompat(api.compat, api.version)),
  },
  {
    method: "GET",
    url: "/v1/metrics",
    summary: "Numbers for Prometheus",
    schema: { querystring: noQuery },
    handle: async (api) => ({ status: 200, ...(await renderMetrics(api.metrics)) }),
  },
  {
    method: "POST",
    url: "/v1/reconnect",
    summary: "Try to connect to a broker now, where the next try is waited for",
    schema: { querystring: noQuery, body: emptyBody },
    handle: (api) => {
      api.reconnect();
      return ok({ broker: reportHealth(api.health).broker });
    },
  },
  {
    method: "POST",
    url: "/v1/token/rotate",
    summary: "A new local token; the old one is good for another minute",
    schema: { querystring: noQuery, body: emptyBody },
    unixSocketOnly: true,
    handle: (api) => ok({ ...api.rotateToken() }),
  },
  {
    method: "POST",
    url: "/v1/reload",
    summary: "Read config.toml again: what took effect, and what waits for a restart",
    schema: { querystring: noQuery, body: emptyBody },
    unixSocketOnly: true,
    handle: (api) => ok({ ...api.reload() }),
  },
];

// The route of the audit: do the records of this host and of the broker balance?
import type { AuditReport } from "@claudemesh/client/daemon";
import { noQuery } from "./queries.ts";
import { ok, type Route } from "./route.ts";

export type AuditApi = { readonly audit: () => Promise<AuditReport> };

export const auditRoutes: readonly Route<AuditApi>[] = [
  {
    method: "GET",
    url: "/v1/audit",
    summary: "Do the records balance, layer by layer?",
    schema: { querystring: noQuery },
    handle: async ({ audit }) => ok({ ...(await audit()) }),
  },
];

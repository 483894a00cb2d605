// Feature bits with versioned parameters: what a broker announces, what a daemon requires, and how a disagreement is
// named. Unknown features and unknown parameters are ignored, so that old clients keep working.

export const closeCodes = {
  /** This daemon was replaced by a newer connection of the same member. */
  replaced_by_newer: 4003,
  /** An older connection of the same member stays connected, and this one is refused. */
  older_connection_kept: 4004,
  /** The hello was refused: bad signature, unknown or revoked member. */
  unauthorized: 4001,
  /** Membership ended while connected. */
  member_revoked: 4005,
  /** The peer sent what the protocol does not allow. */
  protocol_error: 4002,
  feature_unavailable: 4010,
  feature_param_invalid: 4011,
  feature_param_below_floor: 4012,
} as const;

/** A shorter window would leave no room for retries, so daemons refuse it. */
export const dedupeRetentionDaysFloor = 7;

export type DedupeParameters =
  | { readonly mode: "permanent" }
  | { readonly mode: "retention_scoped"; readonly dedupe_retention_days: number };

export const connectionPolicies = ["prefer_newest", "prefer_oldest", "allow_concurrent"] as const;
export type ConnectionPolicy = (typeof connectionPolicies)[number];
const defaultConnectionPolicy: ConnectionPolicy = "prefer_newest";

export type NegotiatedFeatures = {
  readonly dedupe: DedupeParameters;
  readonly inlineBytes: number;
  readonly connectionPolicy: ConnectionPolicy;
};

/** The announcement as it is sent: feature name → its version and parameters. */
export type AnnouncedFeatures = { readonly [feature: string]: { readonly version: number } & Record<string, unknown> };

export function announceFeatures(features: NegotiatedFeatures): AnnouncedFeatures {
  return {
    client_message_id_dedupe: { version: 2, request_fingerprint: true, ...features.dedupe },
    concurrent_connection_policy: { version: 1, default_policy: features.connectionPolicy },
    max_payload: { version: 1, inline_bytes: features.inlineBytes, blob_bytes: features.inlineBytes },
  };
}

export type NegotiationFailure = {
  readonly ok: false;
  readonly code: "feature_unavailable" | "feature_param_invalid" | "feature_param_below_floor";
  readonly feature: string;
  readonly detail: string;
};

export type Negotiation =
  | {
      readonly ok: true;
      readonly features: NegotiatedFeatures;
      /** Optional parameters that could not be understood and have their defaults, each as a sentence for a log. */
      readonly defaulted: readonly string[];
    }
  | NegotiationFailure;

/** How a daemon judges a broker's announcement. Each failure closes the link with the code of the same name. */
export function negotiate(announced: AnnouncedFeatures): Negotiation {
  const dedupe = readDedupe(announced.client_message_id_dedupe);
  if (!dedupe.ok) return dedupe;
  const payload = readMaxPayload(announced.max_payload);
  if (!payload.ok) return payload;
  const policy = readConnectionPolicy(announced.concurrent_connection_policy);
  if (!policy.ok) return policy;
  const { connectionPolicy, defaulted } = policy.value;
  return { ok: true, features: { dedupe: dedupe.value, inlineBytes: payload.value, connectionPolicy }, defaulted };
}

type Announced = AnnouncedFeatures[string] | undefined;
type Reading<T> = { readonly ok: true; readonly value: T } | NegotiationFailure;

const fail = (code: NegotiationFailure["code"], feature: string, detail: string): NegotiationFailure => ({
  ok: false,
  code,
  feature,
  detail,
});

function readDedupe(announced: Announced): Reading<DedupeParameters> {
  const feature = "client_message_id_dedupe";
  // Version 1 compares no fingerprints, so a reused id would be swallowed: that is the same as not having the feature.
  if (announced === undefined || announced.version === 1) {
    return fail("feature_unavailable", feature, "the broker does not compare request fingerprints");
  }
  if (announced.version !== 2) return fail("feature_param_invalid", feature, "version must be 2");
  if (announced.request_fingerprint !== true) {
    return fail("feature_param_invalid", feature, "request_fingerprint must be true");
  }
  const mode = announced.mode;
  if (mode === "permanent") return { ok: true, value: { mode } };
  if (mode !== "retention_scoped") {
    return fail("feature_param_invalid", feature, "mode must be retention_scoped or permanent");
  }
  const days = announced.dedupe_retention_days;
  if (typeof days !== "number" || !Number.isSafeInteger(days)) {
    return fail("feature_param_invalid", feature, "dedupe_retention_days must be a whole number of days");
  }
  if (days < dedupeRetentionDaysFloor) {
    const detail = `dedupe_retention_days is ${days}, the floor is ${dedupeRetentionDaysFloor}`;
    return fail("feature_param_below_floor", feature, detail);
  }
  return { ok: true, value: { mode, dedupe_retention_days: days } };
}

function readMaxPayload(announced: Announced): Reading<number> {
  const feature = "max_payload";
  if (announced === undefined) return fail("feature_unavailable", feature, "the broker announces no size limit");
  if (announced.version !== 1) return fail("feature_param_invalid", feature, "version must be 1");
  for (const name of ["inline_bytes", "blob_bytes"]) {
    const bytes = announced[name];
    if (typeof bytes !== "number" || !Number.isSafeInteger(bytes)) {
      return fail("feature_param_invalid", feature, `${name} must be a whole number of bytes`);
    }
    if (bytes < 1024) return fail("feature_param_below_floor", feature, `${name} is ${bytes}, the floor is 1024`);
  }
  return { ok: true, value: announced.inline_bytes as number };
}

type PolicyReading = { readonly connectionPolicy: ConnectionPolicy; readonly defaulted: readonly string[] };

/** The policy is the one optional parameter: it says what the broker does, and requires nothing of a daemon. */
function readConnectionPolicy(announced: Announced): Reading<PolicyReading> {
  const feature = "concurrent_connection_policy";
  if (announced === undefined) return fail("feature_unavailable", feature, "the broker announces no policy");
  if (announced.version !== 1) return fail("feature_param_invalid", feature, "version must be 1");
  const policy = announced.default_policy ?? defaultConnectionPolicy;
  const knownPolicy = connectionPolicies.find((name) => name === policy);
  if (knownPolicy !== undefined) return { ok: true, value: { connectionPolicy: knownPolicy, defaulted: [] } };
  const remark = `${feature}: default_policy is unknown; ${defaultConnectionPolicy} is assumed`;
  return { ok: true, value: { connectionPolicy: defaultConnectionPolicy, defaulted: [remark] } };
}

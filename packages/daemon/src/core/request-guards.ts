// Which requests the loopback API answers, as rules on headers and query strings: no DNS name but the loopback's own, no web
// page that was not invited, no token where logs and histories would keep it.

const loopbackHost = /^(?:localhost|127\.0\.0\.1|\[::1\])(?::[0-9]{1,5})?$/i;

export function isLoopbackHost(host: string | undefined): boolean {
  return host !== undefined && loopbackHost.test(host);
}

export function isAllowedOrigin(origin: string | undefined, allowed: readonly string[]): boolean {
  return origin === undefined || allowed.includes(origin);
}

/** The credentials of an Authorization header of the scheme that we know; undefined for anything else. */
export function readBearer(header: string | undefined): string | undefined {
  return /^Bearer +([^\s]+) *$/i.exec(header ?? "")?.[1];
}

const tokenNames: ReadonlySet<string> = new Set([
  "token",
  "local_token",
  "access_token",
  "auth_token",
  "bearer_token",
  "api_token",
  "api_key",
  "apikey",
  "auth",
  "authorization",
  "bearer",
]);
const decodingRoundsMax = 8;

export type QueryToken = { readonly found: false } | { readonly found: true; readonly parameter: string };

/**
 * Does a query string carry the token, in a name or a value, however often it was percent-encoded, or a parameter
 * that is named like one? The parameter's name comes back for the log, unless it may be the secret itself.
 */
export function findTokenInQuery(query: string, token: string): QueryToken {
  for (const pair of query === "" ? [] : query.split("&")) {
    const plain = decodeFully(pair).toLowerCase();
    const name = plain.split("=", 1)[0]?.replaceAll("-", "_") ?? "";
    if (tokenNames.has(name)) return { found: true, parameter: name };
    if (plain.includes(token.toLowerCase())) return { found: true, parameter: "(redacted)" };
  }
  return { found: false };
}

function decodeFully(text: string): string {
  let plain = text;
  for (let round = 0; round < decodingRoundsMax; round++) {
    const decoded = plain.replace(/%([0-9a-f]{2})/gi, (_, hex: string) =>
      String.fromCharCode(Number.parseInt(hex, 16)),
    );
    if (decoded === plain) break;
    plain = decoded;
  }
  return plain;
}

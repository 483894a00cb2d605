// Whether what is said to a broker's address can be read and changed on the way: it leaves this host, and not under TLS.

const loopbackHost = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\]|\[::ffff:7f[0-9a-f]{2}:[0-9a-f]{1,4}\])$/i;

/** A host as it stands in a URL, or an IPv6 address without its brackets. */
export function isLoopbackHost(host: string): boolean {
  return loopbackHost.test(host.includes(":") && !host.startsWith("[") ? `[${host}]` : host);
}

/** `url` is http, https, ws or wss; anything else is nobody's address. */
export function isInClear(url: string): boolean {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed === undefined || (parsed.protocol !== "http:" && parsed.protocol !== "ws:")) return false;
  // A URL of ws keeps its host as it is written.
  return !isLoopbackHost(new URL(url.replace(/^ws:/i, "http:")).hostname);
}

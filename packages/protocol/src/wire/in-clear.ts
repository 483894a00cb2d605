// Whether a connection to a broker's address can be read and changed on the way: it leaves this host without TLS.

const loopbackHost = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\]|\[::ffff:7f[0-9a-f]{2}:[0-9a-f]{1,4}\])$/i;

/** A host as in a URL, or an IPv6 address without its brackets. */
export function isLoopbackHost(host: string): boolean {
  return loopbackHost.test(host.includes(":") && !host.startsWith("[") ? `[${host}]` : host);
}

/** `url` is http, https, ws or wss; anything else is not the address of a broker. */
export function isInClear(url: string): boolean {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed === undefined || (parsed.protocol !== "http:" && parsed.protocol !== "ws:")) return false;
  // A ws URL keeps its host as it was written; an http URL normalises it.
  return !isLoopbackHost(new URL(url.replace(/^ws:/i, "http:")).hostname);
}

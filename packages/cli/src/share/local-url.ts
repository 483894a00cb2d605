// Apart from what sharing needs besides: every `up` asks this.

/** The address under which this machine's own daemon reaches a broker that listens on every address. */
export function localUrlOf(brokerUrl: string): string {
  return brokerUrl.replace(/\/\/(?:0\.0\.0\.0|\[::\]):/, "//127.0.0.1:");
}

/**
 * What people on this machine type to reach a broker: 0.0.0.0 is no address to go to, and without TLS only the loopback is taken; a
 * certificate is made out for the public address.
 */
export function urlToType({ url, publicUrl }: { readonly url: string; readonly publicUrl: string }): string {
  return url.startsWith("https:") ? publicUrl : localUrlOf(url);
}

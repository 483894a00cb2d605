// Apart from what sharing needs besides: every `up` asks this.

/** The address under which this machine's own daemon reaches a broker that listens on every address. */
export function localUrlOf(brokerUrl: string): string {
  return brokerUrl.replace(/\/\/(?:0\.0\.0\.0|\[::\]):/, "//127.0.0.1:");
}

// Bounds that daemon, broker and SDK share. A server may be configured below some of them; never above.

export const limits = {
  clientMessageIdCharacters: 128,
  nameCharacters: 64,
  addressCharacters: 192,
  replyToIdCharacters: 128,
  /** Canonical bytes of `meta`. */
  metaBytes: 16_384,
  /** Of the reason for which a dead row is dismissed. */
  dismissWhyCharacters: 500,
  mentions: 256,
  jsonDepth: 64,
  /** Members of objects, and values, in one request to a broker, whatever it is. */
  jsonMembers: 81_920,
  jsonValues: 524_288,
  /** In one request of a program to its daemon. */
  sendsPerRequest: 100,
  /** A local API request or broker request body, before it is parsed. */
  requestBytes: 1_048_576,
  /** A WebSocket frame: a body in base64 with its envelope. */
  frameBytes: 1_572_864,
  /** A frame before the hello is answered, either way, and all frames until then. */
  helloFrameBytes: 8_192,
  helloBytes: 32_768,
  /** The largest frame of all, either way: documents of spaces travel in it. */
  largeFrameBytes: 12_582_912,
  /** Default for the largest message body on the wire; the broker announces its own. */
  inlineBytes: 65_536,
  inlineBytesMin: 1_024,
  inlineBytesMax: 1_048_576,
  pageItems: 1_000,
  pageItemsDefault: 100,
  /** Rows beside a page are counted up to this; the true number may be larger. */
  countedRows: 1_000,
  acksPerFrame: 1_000,
  leaseRequestIdCharacters: 128,
  /** Messages in one lease. */
  leaseItems: 1_000,
  leaseSeconds: 43_200,
  maxDeliveries: 1_000,
  maxDeliveriesDefault: 5,
  searchCharacters: 256,
  webhookUrlCharacters: 2_048,
  /** Named by one webhook. */
  webhookTopics: 100,
  webhookSecretCharactersMin: 16,
  webhookSecretCharactersMax: 256,
  /** Of a profile's fields. */
  statusCharacters: 64,
  titleCharacters: 128,
  avatarCharacters: 256,
  summaryCharacters: 512,
  bioCharacters: 2_048,
  capabilities: 32,
  capabilityCharacters: 64,
} as const;

// Limits that daemon, broker and SDK share. A server may be configured below some of them, never above.

export const limits = {
  clientMessageIdCharacters: 128,
  nameCharacters: 64,
  addressCharacters: 192,
  replyToIdCharacters: 128,
  /** Canonical bytes of `meta`. */
  metaBytes: 16_384,
  /** The reason given for dismissing a dead row. */
  dismissWhyCharacters: 500,
  mentions: 256,
  jsonDepth: 64,
  /** Members of objects, and values, in any one request to a broker. */
  jsonMembers: 81_920,
  jsonValues: 524_288,
  /** Sends in one request of a program to its daemon. */
  sendsPerRequest: 100,
  /** A local API request or a broker request body, before it is parsed. */
  requestBytes: 1_048_576,
  /** A WebSocket frame: a body in base64 with its envelope. */
  frameBytes: 1_572_864,
  /** One frame before the hello is answered, in either direction, and the sum of all frames until then. */
  helloFrameBytes: 8_192,
  helloBytes: 32_768,
  /** The largest frame of all, in either direction: frames of this size carry documents of spaces. */
  largeFrameBytes: 12_582_912,
  /** Default for the largest message body on the wire; the broker announces its own. */
  inlineBytes: 65_536,
  inlineBytesMin: 1_024,
  inlineBytesMax: 1_048_576,
  pageItems: 1_000,
  pageItemsDefault: 100,
  /** Rows before or after a page are counted up to this; the true number may be larger. */
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
  /** Topics that one webhook may name. */
  webhookTopics: 100,
  webhookSecretCharactersMin: 16,
  webhookSecretCharactersMax: 256,
  /** The fields of a profile. */
  statusCharacters: 64,
  titleCharacters: 128,
  avatarCharacters: 256,
  summaryCharacters: 512,
  bioCharacters: 2_048,
  capabilities: 32,
  capabilityCharacters: 64,
} as const;

// Bounds that daemon, broker and SDK share. A server may be configured below some of them; never above.

export const limits = {
  clientMessageIdCharacters: 128,
  nameCharacters: 64,
  addressCharacters: 192,
  replyToIdCharacters: 128,
  /** Canonical bytes of `meta`. */
  metaBytes: 16_384,
  mentions: 256,
  jsonDepth: 64,
  /** A local API request or broker request body, before it is parsed. */
  requestBytes: 1_048_576,
  /** A WebSocket frame: a body in base64 with its envelope. */
  frameBytes: 1_572_864,
  /** Default for the largest message body on the wire; the broker announces its own. */
  inlineBytes: 65_536,
  inlineBytesMin: 1_024,
  inlineBytesMax: 1_048_576,
  pageItems: 1_000,
  pageItemsDefault: 100,
  acksPerFrame: 1_000,
} as const;

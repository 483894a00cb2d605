// What every TLS server of ours requires: version 1.2 or later, and cipher suites that make new keys for each
// connection. So a certificate's key that leaks later does not decrypt traffic that was recorded before.

/**
 * Every suite of TLS 1.3 is of that kind. Of TLS 1.2 only the ECDHE suites are, and only authenticated ciphers are
 * allowed.
 */
export const tlsBounds = {
  minVersion: "TLSv1.2",
  ciphers: [
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_AES_128_GCM_SHA256",
    "ECDHE-ECDSA-AES256-GCM-SHA384",
    "ECDHE-RSA-AES256-GCM-SHA384",
    "ECDHE-ECDSA-CHACHA20-POLY1305",
    "ECDHE-RSA-CHACHA20-POLY1305",
    "ECDHE-ECDSA-AES128-GCM-SHA256",
    "ECDHE-RSA-AES128-GCM-SHA256",
  ].join(":"),
} as const;

// What every TLS server of ours insists on: version 1.2, and suites whose keys are made anew for each connection, so that
// a certificate's key that leaks later opens nothing that was recorded before.

/** Of TLS 1.3 every suite is of that kind; of 1.2 only those with ECDHE, and none without an authenticated cipher. */
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

// Certificates of our own making (RFC 5280), for a broker that is shared without a certificate of its operator's: an
// authority that signs, and the server certificates that it signs. Pure: no files, no clock.
// Why: docs/decisions/0155.
import {
  createHash,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign as signBytes,
} from "node:crypto";
import { isIP } from "node:net";
import {
  addressBytes,
  bitString,
  context,
  der,
  explicit,
  integer,
  octetString,
  oid,
  sequence,
  time,
  utf8,
} from "./der.ts";

export type CertificateRequest = {
  /** What people see as the certificate's name. */
  readonly commonName: string;
  readonly notBefore: Date;
  readonly notAfter: Date;
};

/** A certificate and its private key, both as PEM. */
export type IssuedCertificate = { readonly certificate: string; readonly key: string };

const ecdsaWithSha256 = sequence(oid("1.2.840.10045.4.3.2"));
const oids = {
  commonName: "2.5.4.3",
  subjectKeyIdentifier: "2.5.29.14",
  keyUsage: "2.5.29.15",
  subjectAltName: "2.5.29.17",
  basicConstraints: "2.5.29.19",
  authorityKeyIdentifier: "2.5.29.35",
  extendedKeyUsage: "2.5.29.37",
  serverAuth: "1.3.6.1.5.5.7.3.1",
} as const;

/** A self-signed authority. It may sign server certificates and no further authorities. */
export function makeAuthority(request: CertificateRequest): IssuedCertificate {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const extensions = [
    extension(oids.basicConstraints, sequence(der(0x01, Buffer.of(0xff)), integer(Buffer.of(0))), true),
    // keyCertSign and cRLSign, the sixth and seventh bit.
    extension(oids.keyUsage, bitString(Buffer.of(0x06), 1), true),
    extension(oids.subjectKeyIdentifier, octetString(keyIdentifier(publicKey))),
  ];
  const certificate = issue({
    ...request,
    issuerName: request.commonName,
    issuerKey: privateKey,
    publicKey,
    extensions,
  });
  return { certificate, key: keyPem(privateKey) };
}

/** A server certificate for these host names and IP addresses, signed by the authority. */
export function makeServerCertificate(
  request: CertificateRequest & { readonly hosts: readonly string[] },
  authority: { readonly commonName: string; readonly key: KeyObject },
): IssuedCertificate {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const authorityKeyId = keyIdentifier(createPublicKey(authority.key));
  const extensions = [
    extension(oids.basicConstraints, sequence(), true),
    // digitalSignature, the first bit.
    extension(oids.keyUsage, bitString(Buffer.of(0x80), 7), true),
    extension(oids.extendedKeyUsage, sequence(oid(oids.serverAuth))),
    extension(oids.subjectAltName, sequence(...request.hosts.map(alternativeName))),
    extension(oids.subjectKeyIdentifier, octetString(keyIdentifier(publicKey))),
    extension(oids.authorityKeyIdentifier, sequence(context(0, authorityKeyId))),
  ];
  const certificate = issue({
    ...request,
    issuerName: authority.commonName,
    issuerKey: authority.key,
    publicKey,
    extensions,
  });
  return { certificate, key: keyPem(privateKey) };
}

function issue(parts: {
  readonly commonName: string;
  readonly notBefore: Date;
  readonly notAfter: Date;
  readonly issuerName: string;
  readonly issuerKey: KeyObject;
  readonly publicKey: KeyObject;
  readonly extensions: readonly Buffer[];
}): string {
  const version3 = explicit(0, integer(Buffer.of(2)));
  const toBeSigned = sequence(
    version3,
    integer(serialNumber()),
    ecdsaWithSha256,
    distinguishedName(parts.issuerName),
    sequence(time(parts.notBefore), time(parts.notAfter)),
    distinguishedName(parts.commonName),
    parts.publicKey.export({ type: "spki", format: "der" }),
    explicit(3, sequence(...parts.extensions)),
  );
  const signature = bitString(signBytes("sha256", toBeSigned, parts.issuerKey), 0);
  return pem("CERTIFICATE", sequence(toBeSigned, ecdsaWithSha256, signature));
}

function extension(id: string, value: Buffer, isCritical = false): Buffer {
  const critical = isCritical ? [der(0x01, Buffer.of(0xff))] : [];
  return sequence(oid(id), ...critical, octetString(value));
}

function alternativeName(host: string): Buffer {
  return isIP(host) === 0 ? context(2, Buffer.from(host, "ascii")) : context(7, addressBytes(host));
}

function distinguishedName(commonName: string): Buffer {
  return sequence(der(0x31, sequence(oid(oids.commonName), utf8(commonName))));
}

/** RFC 5280 4.2.1.2: a digest of the public key that tells authorities of the same name apart. */
function keyIdentifier(publicKey: KeyObject): Buffer {
  return createHash("sha256")
    .update(publicKey.export({ type: "spki", format: "der" }))
    .digest()
    .subarray(0, 20);
}

/** Positive, never zero, and at most 20 bytes. */
function serialNumber(): Buffer {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40;
  return bytes;
}

function keyPem(key: KeyObject): string {
  return key.export({ type: "pkcs8", format: "pem" }).toString();
}

function pem(label: string, bytes: Buffer): string {
  const text = bytes.toString("base64").replaceAll(/.{1,64}/g, "$&\n");
  return `-----BEGIN ${label}-----\n${text}-----END ${label}-----\n`;
}

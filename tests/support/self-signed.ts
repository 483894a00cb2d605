// Certificates of our own making for tests, with the machine's openssl.
import { execFileSync } from "node:child_process";
import { join } from "node:path";

const keyOptions = { ec: "ec_paramgen_curve:prime256v1", rsa: "rsa_keygen_bits:2048" };

/** A certificate for this host, signed by itself. Returns the paths of its PEM files. */
export function makeCertificate(
  folder: string,
  name: string,
  kind: "ec" | "rsa" = "ec",
): { cert: string; key: string } {
  const [cert, key] = [join(folder, `${name}-cert.pem`), join(folder, `${name}-key.pem`)];
  execFileSync(
    "openssl",
    [
      ...["req", "-x509", "-newkey", kind, "-pkeyopt", keyOptions[kind], "-nodes", "-days", "2"],
      ...["-subj", `/CN=${name}`, "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"],
      ...["-keyout", key, "-out", cert],
    ],
    { stdio: "ignore" },
  );
  return { cert, key };
}

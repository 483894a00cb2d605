// A socket's error in words that say what to do: Node's own messages name programs and options that users of this
// program do not have.

type SystemError = Pick<NodeJS.ErrnoException, "message" | "name" | "code">;

const notTrusted =
  "its certificate is not from an authority that is trusted here; name that one's file in CLAUDEMESH_CA, or join by an invite of that broker";

const words: Readonly<Record<string, string>> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: notTrusted,
  SELF_SIGNED_CERT_IN_CHAIN: notTrusted,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: notTrusted,
  UNABLE_TO_GET_ISSUER_CERT: notTrusted,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: notTrusted,
  CERT_HAS_EXPIRED: "its certificate has ended, and has to be renewed there",
  CERT_NOT_YET_VALID: "its certificate is not valid yet; one of the two clocks is wrong",
  ERR_TLS_CERT_ALTNAME_INVALID: "its certificate is made out for other names than the one in this address",
};

/** A known code says everything; the rest of OpenSSL's message is for its authors. */
export function describeSocketTrouble({ message, name, code }: SystemError): string {
  const explanation = words[code ?? ""];
  if (explanation !== undefined) return explanation;
  if (/wrong version number|packet length too long/.test(message)) {
    return "it does not speak TLS; an address of it begins with ws:// or http://";
  }
  if (message === "socket hang up")
    return "it hung up without a word; if it speaks TLS, its address begins with wss:// or https://";
  return message === "" ? (code ?? name) : message;
}

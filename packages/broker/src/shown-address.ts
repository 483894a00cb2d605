// Addresses of servers as they may be shown, in the log, in the ready line and in errors: a password can stand in more
// than one part of them.

/**
 * Scheme, host and database of an address; what is no address and has no part for a secret as it is. Undefined where
 * the parts cannot be distinguished: a password with unencoded characters reads as a host, a port or a path.
 */
export function withoutSecret(text: string): string | undefined {
  const isAddress = text.includes("://");
  const url = isAddress ? URL.parse(text) : null;
  if (!/[@?#=]/.test(text)) return isAddress && url === null ? undefined : text;
  if (url === null || `${url.pathname}${url.search}${url.hash}`.includes("@")) return undefined;
  return `${url.protocol}//${url.host}${url.pathname}`;
}

/** What a server says about a command that it does not know quotes its arguments, and one of those is the password. */
export function hidingPasswordOf(url: string): (error: unknown) => unknown {
  const encoded = URL.parse(url)?.password ?? "";
  const secrets = [encoded, decoded(encoded)].filter((secret) => secret !== "");
  return (error) => {
    if (!(error instanceof Error) || !secrets.some((secret) => error.message.includes(secret))) return error;
    return new Error(secrets.reduce((message, secret) => message.replaceAll(secret, "…"), error.message));
  };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

// The word for how an agent's work failed.

/** Errors have codes; what has none is a bug. */
export function codeOf(error: unknown): string {
  const { code, body } = error as { readonly code?: unknown; readonly body?: { readonly error: string } };
  const known = body?.error ?? code;
  if (typeof known === "string" && known !== "internal_error") return known;
  throw error;
}

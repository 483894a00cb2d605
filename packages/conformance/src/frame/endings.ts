// The ways in which a scenario can end without success, and why a run cannot begin.

/** What was expected, what came, and the request that shows it. */
export type MissFacts = { readonly expected: string; readonly got: string; readonly request: string };

/** The implementation did something other than what the contract says. */
export class Miss extends Error {
  override readonly name = "Miss";
  readonly facts: MissFacts;

  constructor({ expected, got, request }: MissFacts) {
    const facts = { expected: maskSecrets(expected), got: maskSecrets(got), request: maskSecrets(request) };
    super(`expected ${facts.expected}, got ${facts.got}`);
    this.facts = facts;
  }
}

/** Hides values that would be useful to a reader of the report: tokens and nonces, in requests and in answers. */
function maskSecrets(text: string): string {
  return text.replace(/"(sessionToken|authorization_nonce|lease_token|secret|token)":"[^"]*"?/g, '"$1":"…"');
}

/** The scenario cannot run with the options that the kit was given; the message says what is missing. */
export class Skipped extends Error {
  override readonly name = "Skipped";
}

/** A value without which a scenario cannot run; throws Skipped where it is missing. */
export function needed<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new Skipped(`needs ${what}`);
  return value;
}

/** The kit cannot begin: wrong options, or no server answers. */
export class CannotBegin extends Error {
  override readonly name = "CannotBegin";
}

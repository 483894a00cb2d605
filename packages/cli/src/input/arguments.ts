// How commands read the words that they are given: ids, names, keys, numbers and spans of time. Refused here, a mistyped one
// costs no call and no search, and the answer says what is accepted, where "there is none" would send its reader looking for
// something lost.
import { isClientMessageId } from "@claudemesh/protocol/messages/client-message-id";
import { isMemberName, isName, isPublicKey } from "@claudemesh/protocol/messages/names";
import { InvalidArgumentError } from "commander";
import type { Shell } from "../shell.ts";

const nameWords = "1–64 letters, digits, '.', '_' and '-', beginning with a letter or digit";

/** Of a message or an outbox row, given out by the user, the daemon or the broker. */
export function messageId(text: string): string {
  if (isClientMessageId(text)) return text;
  throw new InvalidArgumentError("An id is 1–128 printable ASCII characters without spaces.");
}

/** A member by name or by public key. */
export function memberOrKey(text: string): string {
  if (isPublicKey(text)) return text;
  if (/^[0-9a-f]{64}$/i.test(text)) throw new InvalidArgumentError("A public key is written in lower-case hex.");
  const name = text.replace(/^@/, "");
  if (isMemberName(name)) return name;
  throw new InvalidArgumentError(`A member is a name (${nameWords}) or a public key (64 lower-case hex digits).`);
}

export function webhookName(text: string): string {
  if (isName(text)) return text;
  throw new InvalidArgumentError(`A webhook is called by its name (${nameWords}).`);
}

/** A public key alone, such as a broker's. */
export function publicKey(text: string): string {
  if (isPublicKey(text)) return text;
  throw new InvalidArgumentError("A public key is 64 lower-case hex digits.");
}

// Topics and queues are written like addresses where one sends to them. A command that takes nothing else accepts them with
// and without the sign in front; no name begins with one.

export const topicName = (given: string): string => given.replace(/^(#|topic:)/, "");

export const queueName = (given: string): string => given.replace(/^queue:/, "");

export function parseCount(text: string): number {
  const count = /^[1-9][0-9]{0,8}$/.test(text) ? Number(text) : 0;
  if (count === 0) throw new InvalidArgumentError("It takes a whole number from 1 on.");
  return count;
}

const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

export function parseWait(text: string): number {
  const [, count, unit] = /^([0-9]{1,9})(ms|s|m|h)$/.exec(text) ?? [];
  const ms = Number(count) * (unitMs[unit ?? ""] ?? Number.NaN);
  if (!(ms > 0 && ms <= 86_400_000)) throw new InvalidArgumentError("It takes a time such as 500ms, 30s, 5m or 1h.");
  return ms;
}

/** A time during which something is good: a year at most. */
export function parseValidity(text: string): number {
  const [, count, unit] = /^([0-9]{1,9})(s|m|h|d)$/.exec(text) ?? [];
  const ms = Number(count) * (unitMs[unit ?? ""] ?? Number.NaN);
  if (!(ms > 0 && ms <= 366 * 86_400_000)) throw new InvalidArgumentError("It takes a time such as 30m, 1h or 7d.");
  return ms;
}

export const plainHttpHelp = "allow a broker on another machine without TLS, in a network that you trust";

/** By the flag or by CLAUDEMESH_PLAIN_HTTP, which `broker serve` reads as well. */
export function allowsPlainHttp({ env }: Pick<Shell, "env">, options: { readonly plainHttp?: boolean }): boolean {
  return options.plainHttp === true || env.CLAUDEMESH_PLAIN_HTTP === "true";
}

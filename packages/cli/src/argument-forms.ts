// What an id, a member's name and a public key look like. Refused here, a mistyped one costs no call and no search, and
// the answer says what is accepted, where "there is none" would send its reader looking for something lost.
import { isClientMessageId } from "@claudemesh/protocol/messages/client-message-id";
import { isMemberName, isName, isPublicKey } from "@claudemesh/protocol/messages/names";
import { InvalidArgumentError } from "commander";

const nameWords = "1–64 letters, digits, '.', '_' and '-', beginning with a letter or digit";

/** Of a message or an outbox row, whoever gave it out. */
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

// Texts that are compared byte for byte must have one spelling: no U+0000, and only the composed form (NFC), so that
// what looks the same is the same.
import { MeshError } from "../errors/errors.ts";

/** Text that has only one spelling. */
const plain = /^[ -~]*$/;

/** Throws for the first field that must not go into a digest; absent fields pass. */
export function checkRegistrarText(fields: Readonly<Record<string, string | undefined>>): void {
  for (const field in fields) {
    const text = fields[field];
    if (text === undefined || plain.test(text)) continue;
    if (text.includes("\0")) throw new MeshError("nul_in_field", undefined, { field });
    if (!text.isWellFormed() || text.normalize("NFC") !== text) {
      const message = `The field ${JSON.stringify(field)} is not in Unicode's composed form (NFC).`;
      throw new MeshError("invalid_request", message, { field });
    }
  }
}

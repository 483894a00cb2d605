// Members as people know them: by name, and by the beginning of the key where a name is missing or is not theirs alone.
export type NameOf = (pubkey: string) => string;

type Named = { readonly pubkey: string; readonly name: string };

const shortKeyDigits = 12;

export function shortKey(pubkey: string): string {
  return pubkey.slice(0, shortKeyDigits);
}

/** `bob`, or `(3b6a27bcceb6)` where the name is not known. */
export function showMember(name: string | null | undefined, pubkey: string): string {
  return name ?? `(${shortKey(pubkey)})`;
}

/** Names as all members of a mesh have them: one that two have, in whatever case, does not say which of them it is. */
export function namesAmong(members: readonly Named[]): NameOf {
  const holders = new Map<string, number>();
  for (const { name } of members) holders.set(name.toLowerCase(), (holders.get(name.toLowerCase()) ?? 0) + 1);
  const names = new Map(members.map(({ pubkey, name }) => [pubkey, name]));
  return (pubkey) => {
    const name = names.get(pubkey);
    if (name === undefined || holders.get(name.toLowerCase()) === 1) return showMember(name, pubkey);
    return `${name} (${shortKey(pubkey)})`;
  };
}

/** A key inside an address or a field, cut to what people compare; `--json` has it whole. */
export function shortenKeys(text: string): string {
  return text.replace(/\b[0-9a-f]{64}\b/g, (key) => `${shortKey(key)}…`);
}

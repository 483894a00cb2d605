// Wrong builds of what keeps a broker from reading, changing or moving direct messages.
import type { KnownBad } from "./fault.ts";

const seal = "packages/client/src/seal/seal.ts";
const inboxMessage = "packages/daemon/src/core/inbox-message.ts";

export const sealingFaults: readonly KnownBad[] = [
  {
    name: "broker-labels-believed",
    harm: "a broker replays, reflects or relabels a direct message, and it is shown",
    edits: [
      {
        file: inboxMessage,
        find: '  if (relabelled !== undefined) return { unreadable: "relabelled", meta: "" };\n',
        replace: '  if (relabelled === "recipient") return { unreadable: "relabelled", meta: "" };\n',
      },
    ],
  },
  {
    name: "another-members-message-shown",
    harm: "a broker shows a member what it says is for another one",
    edits: [
      {
        file: inboxMessage,
        find: '  if (!isMeantFor(item, ownPubkey)) return { unreadable: "relabelled", meta: "" };\n',
        replace: "",
      },
    ],
  },
  {
    name: "priority-not-compared",
    harm: "a broker makes a message urgent that its sender did not",
    edits: [
      {
        file: "packages/protocol/src/messages/sealed-content.ts",
        find: '  if (labels.priority !== content.priority) return "priority";\n',
        replace: "",
      },
    ],
  },
  {
    name: "nonce-from-fingerprint-alone",
    harm: "two boxes that differ beside the body share a nonce, and a broker reads the difference",
    edits: [
      {
        file: seal,
        find: "memory.subarray(0, fingerprintBytes + headLength)",
        replace: "memory.subarray(0, fingerprintBytes + headLength * 0)",
      },
    ],
  },
  {
    name: "versions-share-a-box-key",
    harm: "a broker passes the inside of a box off as a text of the earlier version",
    edits: [
      {
        file: "packages/client/src/seal/shared-keys.ts",
        find: "version3: this.#crypto.crypto_generichash(keyBytes, encodeUtf8(version3Label), version2)",
        replace: "version3: version2.slice(0, encodeUtf8(version3Label).length + keyBytes)",
      },
    ],
  },
  {
    name: "sealed-meta-on-the-wire",
    harm: "the broker reads the meta of direct messages",
    edits: [
      {
        file: "packages/daemon/src/core/outbox-row.ts",
        find: '  const canonicalMeta = version === "3" ? "" : row.canonicalMeta;\n',
        replace: "  const { canonicalMeta } = row;\n",
      },
    ],
  },
  {
    name: "requeue-keeps-the-box",
    harm: "a requeued direct message has its old id in the box and is never shown to its recipient",
    edits: [
      {
        file: "packages/daemon/src/services/requeue.ts",
        find: '  if (patch === undefined && row.envelopeVersion !== "3") return undefined;\n',
        replace: "  if (patch === undefined) return undefined;\n",
      },
    ],
  },
  {
    name: "changed-key-used",
    harm: "a broker names another key for a member, and the next message is sealed for it",
    edits: [
      {
        file: "packages/daemon/src/services/resolve-destination.ts",
        find: "      if (refusal !== undefined) return",
        replace: "      if (refusal !== undefined && ref === ports.ownPubkey) return",
      },
    ],
  },
  {
    name: "pin-forgotten",
    harm: "a restart of the daemon makes it believe another key behind a name that it knew",
    edits: [
      {
        file: "packages/daemon/src/services/peer-pins.ts",
        find: "      await this.#ports.store.put(pin);\n",
        replace: "      await Promise.resolve();\n",
      },
    ],
  },
  {
    name: "another-key-under-a-known-name",
    harm: "a message of a stranger is shown under the name of a member that one knows",
    edits: [
      {
        file: "packages/daemon/src/services/peer-pins.ts",
        find: 'return trust === "changed" ? undefined : name;',
        replace: 'return trust === "changed" ? name : name;',
      },
    ],
  },
  {
    name: "one-name-for-two-keys",
    harm: "in a mesh from before names were unique, a namesake's messages are shown as those of whom one means",
    edits: [
      {
        file: "packages/daemon/src/services/peer-pins.ts",
        find: "members.isAnothers(name, pubkey) ? undefined : name",
        replace: "members.isAnothers(name, pubkey) ? name : name",
      },
    ],
  },
  {
    name: "another-key-named-where-a-message-is-looked-up",
    harm: "a caller that looks up a stranger's message reads the name of a member that it knows",
    edits: [
      {
        file: "packages/daemon/src/wiring/wire-operator.ts",
        find: "wiring.nameOf(pubkey, remembered) ?? (pubkey",
        replace: "enqueue.directory.nameOf(pubkey) ?? (pubkey",
      },
    ],
  },
];

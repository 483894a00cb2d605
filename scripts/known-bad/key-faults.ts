// What breaks the proof of who is who: a broker that anything can pose as, or a hello that is good elsewhere.
import type { KnownBad } from "./fault.ts";

const connection = "packages/client/src/link/connection.ts";
const endedStatus = "packages/client/src/link/ended-status.ts";

export const keyFaults: readonly KnownBad[] = [
  {
    name: "hello-not-checked-proof",
    harm: "a server that names the broker's key, which every invite shows, is taken for the broker",
    edits: [
      {
        file: connection,
        find: "} else if (!isSignedBy(broker_key, proofBytes({ ...session, features }), signature)) {",
        replace:
          '} else if (!isSignedBy(broker_key, proofBytes({ ...session, features }), signature) && broker_key === "") {',
      },
    ],
  },
  {
    name: "hello-not-checked-key",
    harm: "a program that has taken the broker's port is believed with a key of its own",
    edits: [
      {
        file: connection,
        find: "} else if (expected !== undefined && expected !== broker_key) {",
        replace: '} else if (expected !== undefined && expected !== broker_key && broker_key === "") {',
      },
    ],
  },
  {
    name: "hello-not-checked-features",
    harm: "an attacker on the way announces what ends every daemon",
    edits: [
      {
        file: "packages/protocol/src/wire/signing.ts",
        find: "  const features = canonicalJson(proof.features as JsonObject);\n",
        replace:
          "  const features = canonicalJson({ ...proof.features, max_payload: null } as unknown as JsonObject);\n",
      },
    ],
  },
  {
    name: "close-code-of-a-stranger-believed",
    harm: "a program on the broker's port ends a daemon with one close code",
    edits: [
      {
        file: endedStatus,
        find: "  if (!close.believed) {\n",
        replace: "  if (!close.believed && close.code < 0) {\n",
      },
    ],
  },
  {
    name: "features-of-an-unknown-broker-believed",
    harm: "a home of before 0.2 is ended by whatever answers first",
    edits: [{ file: endedStatus, find: "  if (!believed) {\n", replace: "  if (!believed && announced === null) {\n" }],
  },
  {
    name: "hello-not-checked-mesh",
    harm: "a hello that was signed for one mesh opens another",
    edits: [
      {
        file: "packages/broker/src/transport/authenticate-hello.ts",
        find: "  if (mesh_id !== session.mesh_id) return refused;\n",
        replace: "",
      },
    ],
  },
  {
    name: "hello-not-checked-nonces",
    harm: "a hello that a relay was given is good on a connection of the relay's own",
    edits: [
      {
        file: "packages/protocol/src/wire/signing.ts",
        find: '  return signable("claudemesh-hello-2", ...sessionFields(hello), hello.pubkey, hello.kind);\n',
        replace:
          '  const { mesh_id, broker_key, pubkey, kind } = hello;\n  return signable("claudemesh-hello-2", mesh_id, broker_key, pubkey, kind);\n',
      },
    ],
  },
  {
    name: "signed-request-not-checked",
    harm: "a relay makes a token in the session that it passes on, and keeps the owner's rights for ever",
    edits: [
      {
        file: "packages/broker/src/transport/signed-requests.ts",
        find: "    if (!verifySignature(this.#pubkey, bytes, signature)) {\n",
        replace: "    if (!verifySignature(this.#pubkey, bytes, signature) && id < 0) {\n",
      },
    ],
  },
  {
    name: "signed-request-good-twice",
    harm: "a relay repeats a frame that it saw, and a second token is made",
    edits: [
      {
        file: "packages/broker/src/transport/signed-requests.ts",
        find: "    this.#lastId = id;\n",
        replace: "",
      },
    ],
  },
  {
    name: "secret-before-the-proof",
    harm: "an invite whose broker was swapped gives its secret to the attacker who swapped it",
    edits: [
      {
        file: "packages/client/src/broker/prove-broker.ts",
        find: "  if (expected !== undefined && expected !== broker_key) {\n",
        replace: '  if (expected === broker_key && expected === "") {\n',
      },
    ],
  },
];

// Known faults of who belongs to a mesh, and of what its owners have set.
import type { KnownBad } from "./fault.ts";

export const memberFaults: readonly KnownBad[] = [
  {
    name: "names-differ-by-case",
    harm: "an invitee calls itself Bob beside bob, and inboxes show both as one",
    edits: [
      {
        file: "packages/members/src/stores/sqlite/members-store.ts",
        find: "AND lower(name) = lower(?)",
        replace: "AND name = ?",
      },
    ],
  },
  {
    name: "former-members-names-are-free",
    harm: "mail for a member that was revoked goes to the next one that takes its name",
    edits: [
      {
        file: "packages/members/src/stores/sqlite/members-store.ts",
        find: "AND lower(name) = lower(?)",
        replace: "AND lower(name) = lower(?) AND revoked_at IS NULL",
      },
    ],
  },
  {
    name: "former-members-write",
    harm: "a member that was revoked through another broker goes on writing here while no signal passes",
    edits: [
      {
        file: "packages/broker/src/operations/handler.ts",
        find: '(access[name] === "write" && caller.sessions !== undefined)',
        replace: '(access[name] === "write" && caller.sessions === undefined)',
      },
    ],
  },
  {
    name: "former-members-read-behind-a-slow-body",
    harm: "a member that was revoked reads spaces for as long as it draws out the bodies of requests that it had begun",
    edits: [
      {
        file: "packages/broker/src/transport/operation-routes.ts",
        find: "(asksInTransaction(name) ? admitted.get(request) : undefined)",
        replace: "(asksInTransaction(name) || large !== undefined ? admitted?.get(request) : undefined)",
      },
    ],
  },
  {
    name: "forged-signals-are-heard",
    harm: "any client with access to Redis ends daemons' connections",
    edits: [
      {
        file: "packages/broker/src/signals/signal.ts",
        find: "  if (shown.length !== wanted.length || !timingSafeEqual(shown, wanted)) return undefined;\n",
        replace: "  if (shown.length === wanted.length + 1 && timingSafeEqual(shown, shown)) return undefined;\n",
      },
    ],
  },
  {
    name: "dm-policy-before-the-look-up",
    harm: "a retry of a message that was accepted is refused once the mesh asks for seals",
    edits: [
      {
        file: "packages/messages/src/services/accept.ts",
        find: "  if (stored !== undefined) return stored;\n",
        replace:
          '  if (isUnsealedDm(envelope) && !(await ports.takesUnsealed(meshId))) return { type: "refused", code: "dm_not_sealed" };\n  if (stored !== undefined) return stored;\n',
      },
    ],
  },
  {
    name: "commits-send-in-clear",
    harm: "a direct message in clear passes a mesh that refuses them, beside a commit",
    edits: [
      {
        file: "packages/messages/src/services/prepare-sends.ts",
        find: "    await checkSealed(ports, send, index);\n",
        replace: "",
      },
    ],
  },
];

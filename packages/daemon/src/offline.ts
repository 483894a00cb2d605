// What can be done with a daemon's folder while no daemon runs in it, and how to look into one: the door for commands.
export { readMembershipEnd } from "./read-membership-end.ts";
export { type AcceptedHost, acceptHost } from "./services/accept-host.ts";
export { backUpDaemon } from "./services/back-up.ts";
export { examineFolder, type FolderFindings } from "./services/examine.ts";
export { type Remint, remintKeys } from "./services/remint.ts";
export { type Recovery, salvageOutbox } from "./services/salvage-outbox.ts";
export { usePeerKey } from "./services/use-peer-key.ts";

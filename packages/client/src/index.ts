// The main entry of the SDK: enough for a first program on a host with a daemon. Spaces, `once`, the registrar, brokers
// and keys have entries of their own (docs/sdk.md).
export { connect, type InboxOptions, type MeshConnection, type MessageOptions } from "./daemon/connect.ts";
export type { InboxItem, MessageFacts, SendBody } from "./daemon/daemon-client.ts";
export { DaemonRefused, DaemonUnreachable } from "./daemon/daemon-failures.ts";
export type { LocalDaemonOptions } from "./daemon/local-daemon.ts";

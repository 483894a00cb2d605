// A broker that does what a test says: requests wait until the test answers them, statuses come when it says so.
import type {
  Link,
  LinkOptions,
  LinkOutcome,
  LinkStatus,
  RequestOptions,
} from "@claudemesh/client/internal/link-contract";
import type { NegotiatedFeatures } from "@claudemesh/protocol/features";
import type { OperationName } from "@claudemesh/protocol/wire/operations";

export type ScriptedRequest = {
  readonly operation: OperationName;
  readonly input: Readonly<Record<string, unknown>>;
  readonly options: RequestOptions;
  readonly end: (outcome: LinkOutcome) => void;
  readonly answer: (status: number, body: unknown) => void;
};

export const testFeatures: NegotiatedFeatures = {
  dedupe: { mode: "retention_scoped", dedupe_retention_days: 365 },
  inlineBytes: 65_536,
  connectionPolicy: "prefer_newest",
};

export const testBrokerKey = "0b".repeat(32);

export class ScriptedLink implements Link {
  /** Every request so far, in order. */
  readonly requests: ScriptedRequest[] = [];
  /** Operations that are answered at once, without a test waiting for them. */
  readonly automatic = new Map<OperationName, (input: Readonly<Record<string, unknown>>) => LinkOutcome>([
    ["destination.state", takesMessages],
  ]);
  readonly #unseen: ScriptedRequest[] = [];
  #waiting: { readonly operation: OperationName; readonly resolve: (request: ScriptedRequest) => void }[] = [];
  #status: LinkStatus = { state: "connecting" };
  options: LinkOptions | undefined;
  closed = false;
  renewals = 0;

  /** For services, which see no link options. */
  readonly renew = (): void => {
    this.renewals++;
  };
  readonly whenOnline = async (_timeoutMs: number): Promise<boolean> => this.#status.state === "online";

  readonly status = (): LinkStatus => this.#status;
  readonly bufferedBytes = (): number => 0;

  readonly request = (operation: OperationName, input: object, options: RequestOptions): Promise<LinkOutcome> => {
    const automatic = this.automatic.get(operation);
    return new Promise((end) => {
      const fields = input as Readonly<Record<string, unknown>>;
      const answer = (status: number, body: unknown) => end({ type: "answered", status, body });
      const request: ScriptedRequest = { operation, input: fields, options, end, answer };
      this.requests.push(request);
      if (automatic !== undefined) {
        end(automatic(fields));
        return;
      }
      const waiting = this.#waiting.find((each) => each.operation === operation);
      if (waiting === undefined) {
        this.#unseen.push(request);
        return;
      }
      this.#waiting = this.#waiting.filter((each) => each !== waiting);
      waiting.resolve(request);
    });
  };

  readonly close = async (): Promise<void> => {
    this.closed = true;
    this.#status = { state: "stopped", reason: "closed", detail: "closed by this side" };
    for (const { end } of this.requests) end({ type: "connection_lost" });
    this.options?.onStatus(this.#status);
  };

  /** The next request of this kind that no test has looked at. */
  requested(operation: OperationName): Promise<ScriptedRequest> {
    const at = this.#unseen.findIndex((each) => each.operation === operation);
    const [seen] = at < 0 ? [] : this.#unseen.splice(at, 1);
    if (seen !== undefined) return Promise.resolve(seen);
    return new Promise((resolve) => this.#waiting.push({ operation, resolve }));
  }

  ofKind(operation: OperationName): ScriptedRequest[] {
    return this.requests.filter((each) => each.operation === operation);
  }

  become(status: LinkStatus): void {
    this.#status = status;
    this.options?.onStatus(status);
  }

  goOnline(features: NegotiatedFeatures = testFeatures): void {
    const member = { pubkey: this.options?.identity.publicKey ?? "00".repeat(32), name: "me", role: "owner" as const };
    const hello = { mesh: "acme", mesh_id: this.options?.identity.meshId ?? "mesh", member };
    this.become({ state: "online", hello, features, brokerKey: testBrokerKey });
  }

  goOffline(): void {
    this.become({ state: "offline", reason: "lost", detail: "the test said so" });
  }
}

/** Every destination is there, unless a test says otherwise. */
function takesMessages({ kind, ref }: Readonly<Record<string, unknown>>): LinkOutcome {
  return { type: "answered", status: 200, body: { kind, ref, refusal: null, has_recipients: true } };
}

/** Lets everything that is ready to run, run: promises, group commits and what follows from them. */
export async function settle(turns = 8): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve));
}

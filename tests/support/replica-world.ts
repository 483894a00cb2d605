// Replicas of one space over connections that can be cut, and the waiting for all of them to come to rest.
import { type Space, type SpaceClient, type SpaceClientOptions, spacesOver } from "@claudemesh/client/space";
import { CuttableWire } from "./cuttable-wire.ts";
import { SpaceServer } from "./space-server.ts";

export const alice = "a".repeat(64);
export const bob = "b".repeat(64);

export type OpenReplica = { readonly space: Space; readonly wire: CuttableWire };

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
const turnsOfRest = 8;

export class ReplicaWorld {
  readonly server: SpaceServer;
  readonly #clients: SpaceClient[] = [];
  readonly #replicas: OpenReplica[] = [];

  private constructor(server: SpaceServer) {
    this.server = server;
  }

  static async start(): Promise<ReplicaWorld> {
    return new ReplicaWorld(await SpaceServer.start([alice, bob]));
  }

  async open(
    member: string,
    isCut?: (frame: number) => boolean,
    options: Pick<SpaceClientOptions, "maxPending" | "onError" | "loadSealing"> = {},
  ): Promise<OpenReplica> {
    const wire = new CuttableWire(this.server, member, isCut);
    const client = spacesOver(wire, { sleep: turn, random: () => 0, ...options });
    this.#clients.push(client);
    const replica = { space: await client.space(this.server.space), wire };
    this.#replicas.push(replica);
    return replica;
  }

  /** Nothing is on its way, nothing waits, and every replica has heard everything. */
  async rest(): Promise<void> {
    for (let quiet = 0, turns = 0; quiet < turnsOfRest; turns += 1) {
      if (turns > 20_000) throw new Error("the replicas do not come to rest");
      await this.server.settle();
      await turn();
      const isQuiet = this.#replicas.every(({ wire, space }) => wire.isQuiet && (!wire.isUp() || space.pending === 0));
      quiet = isQuiet ? quiet + 1 : 0;
    }
  }

  async stop(): Promise<void> {
    for (const client of this.#clients.splice(0)) await client.close();
    this.server.stop();
    if (this.server.failures.length > 0) throw this.server.failures[0];
  }
}

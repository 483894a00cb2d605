// The types of scenarios and areas. An area is one kind of server that the kit can test; adding one takes a folder
// below areas/ and a line in areas.ts.
import type { OptionSpec, OptionValues } from "./options.ts";

export type ScenarioInfo = {
  /** Begins with the section; unique within its area. */
  readonly id: string;
  /** The section of the contract that it shows. */
  readonly section: string;
  /** One sentence of the contract. */
  readonly says: string;
};

export type Scenario<World> = ScenarioInfo & { readonly run: (world: World) => Promise<void> };

/** `name` is the part of the id after the section. */
export function scenario<World>(
  section: string,
  name: string,
  says: string,
  run: (world: World) => Promise<void>,
): Scenario<World> {
  return { id: `${section}-${name}`, section, says, run };
}

/** One open target, ready for scenarios. */
type OpenArea = {
  readonly run: (id: string) => Promise<void>;
  readonly close: () => Promise<void>;
};

export type Area = {
  readonly name: string;
  readonly summary: string;
  readonly options: readonly OptionSpec[];
  readonly scenarios: readonly ScenarioInfo[];
  /** Rejects with CannotBegin. */
  readonly open: (options: OptionValues) => Promise<OpenArea>;
};

export type AreaDefinition<World> = Omit<Area, "open" | "scenarios"> & {
  readonly scenarios: readonly Scenario<World>[];
  readonly open: (options: OptionValues) => Promise<World>;
  /** Runs after each scenario, however it ended: connections are closed, faults are removed. */
  readonly tidy: (world: World) => Promise<void>;
  readonly close: (world: World) => Promise<void>;
};

/** Keeps the world's type between an area's own files. */
export function defineArea<World>(definition: AreaDefinition<World>): Area {
  const byId = new Map(definition.scenarios.map((each) => [each.id, each]));
  if (byId.size !== definition.scenarios.length) throw new Error(`two scenarios of ${definition.name} have one id`);
  return {
    name: definition.name,
    summary: definition.summary,
    options: definition.options,
    scenarios: definition.scenarios,
    open: async (options) => {
      const world = await definition.open(options);
      return {
        run: async (id) => {
          try {
            await byId.get(id)?.run(world);
          } finally {
            await definition.tidy(world);
          }
        },
        close: () => definition.close(world),
      };
    },
  };
}

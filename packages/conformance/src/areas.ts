// The areas that the kit knows. Each is whole before it stands here.
import { brokerArea } from "./areas/broker/area.ts";
import { daemonArea } from "./areas/daemon/area.ts";
import type { Area } from "./frame/scenario.ts";

export const areas: readonly Area[] = [brokerArea, daemonArea];

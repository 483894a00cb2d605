// The areas of the kit. An area is listed here once it is complete.
import { brokerArea } from "./areas/broker/area.ts";
import { daemonArea } from "./areas/daemon/area.ts";
import { registrarArea } from "./areas/registrar/area.ts";
import { spacesArea } from "./areas/spaces/area.ts";
import type { Area } from "./frame/scenario.ts";

export const areas: readonly Area[] = [brokerArea, daemonArea, spacesArea, registrarArea];

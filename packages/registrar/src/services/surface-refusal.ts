// What the registrar answers while its tables do not prove single use: what is missing, and where to look.
import type { MeshError } from "@claudemesh/protocol/errors";
import { registrarRefusal } from "@claudemesh/protocol/registrar/registrar-refusals";
import type { SurfaceProof } from "../core/surface.ts";

/** In the message; the list has all. */
const namedMax = 3;

export function surfaceRefusal(proof: SurfaceProof): MeshError {
  const failed = proof.criteria.filter(({ holds }) => !holds);
  const missing = [...new Set(failed.flatMap((criterion) => [...criterion.missing, ...criterion.forbidden]))];
  const letters = failed.map(({ criterion }) => `(${criterion})`).join(", ");
  const named = missing.slice(0, namedMax).join("; ") + (missing.length > namedMax ? "; …" : "");
  const message = `The registrar is closed: ${letters} of its tables' proof does not hold (${named}). Look with \`claudemesh registrar prove\`, repair the schema, and start the broker again.`;
  return registrarRefusal("replay_surface_not_fit", { criteria: failed, missing }, message);
}

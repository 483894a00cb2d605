// One frame from a member's socket, as JSON within the bounds of its operation. Nearly every frame is small and flat, and
// is read once; only what passes those bounds is looked at for whether its operation may be larger.
import { MeshError } from "@claudemesh/protocol/errors";
import { parseStrictJson, StrictJsonError } from "@claudemesh/protocol/json";
import { limits } from "@claudemesh/protocol/messages/limits";
import { type OperationSpec, operations } from "@claudemesh/protocol/wire/operations";
import { refuseManyValues } from "@claudemesh/protocol/wire/value-count";
import { isOperationName } from "../operations/run-operation.ts";

/** Beyond the bound of its operation: the socket is closed with 1009. */
export class FrameTooLarge extends Error {
  override readonly name = "FrameTooLarge";
}

const largestDepth = Math.max(
  ...Object.values(operations).map((spec: OperationSpec) => spec.large?.jsonDepth ?? limits.jsonDepth),
);

/** `mayBeLarge`: the peer has said who it is. */
export function readFrame(bytes: Buffer, mayBeLarge: boolean): Record<string, unknown> {
  if (!mayBeLarge && bytes.length > limits.helloFrameBytes) throw new FrameTooLarge("too large before the hello");
  const isOversize = bytes.length > limits.frameBytes;
  if (refuseManyValues(bytes) !== undefined) throw new FrameTooLarge("the frame holds too many values");
  if (!isOversize) {
    try {
      return objectOf(parseStrictJson(bytes, { maxDepth: limits.jsonDepth }));
    } catch (error) {
      if (!mayBeLarge || !(error instanceof StrictJsonError) || error.reason !== "too_deep") throw error;
    }
  }
  const frame = isOversize ? readOversize(bytes) : objectOf(parseStrictJson(bytes, { maxDepth: largestDepth }));
  const { type } = frame;
  const spec: OperationSpec | undefined =
    typeof type === "string" && isOperationName(type) ? operations[type] : undefined;
  if (bytes.length > (spec?.large?.bytes ?? limits.frameBytes)) throw new FrameTooLarge("the frame is too large");
  if (spec?.large === undefined && !isOversize) throw new MeshError("too_deep");
  return frame;
}

/** Only an operation may allow a frame to be so large, and what cannot be read names none. */
function readOversize(bytes: Buffer): Record<string, unknown> {
  try {
    return objectOf(parseStrictJson(bytes, { maxDepth: largestDepth }));
  } catch {
    throw new FrameTooLarge("the frame is too large");
  }
}

function objectOf(value: unknown): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new MeshError("invalid_request", "A frame is a JSON object.");
  }
  return value as Record<string, unknown>;
}

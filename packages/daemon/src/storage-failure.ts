// Failures of the disk as callers of the local API see them. Only a commit that returned has consumed anything.
import { asMeshError } from "@claudemesh/http/server";
import { MeshError } from "@claudemesh/protocol/errors";
import { StorageError } from "@claudemesh/storage/errors";

const fullText =
  "This host's disk is full, and nothing was stored. Make room on it, or in the outbox: `claudemesh daemon outbox prune --older-than-days 7`. Then send the same again.";
const failedText =
  "This host's disk failed to store this. See to the disk (the daemon's log has the error), then send the same again.";

export function toMeshError(error: unknown): MeshError {
  if (!(error instanceof StorageError)) return asMeshError(error);
  switch (error.kind) {
    case "disk_full":
      return new MeshError("insufficient_storage", fullText, {}, error);
    case "io":
      return new MeshError("insufficient_storage", failedText, {}, error);
    case "closed":
      return new MeshError("stopping", undefined, {}, error);
    case "busy":
      return new MeshError("daemon_busy", "The disk is busy; try again.", {}, error);
    default:
      return new MeshError("storage_unavailable", undefined, {}, error);
  }
}

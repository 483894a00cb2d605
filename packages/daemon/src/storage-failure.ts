// Failures of the disk as callers of the local API see them. Only a commit that returned has consumed anything.
import { asMeshError } from "@claudemesh/http/server";
import { MeshError } from "@claudemesh/protocol/errors";
import { StorageError } from "@claudemesh/storage/errors";

export function toMeshError(error: unknown): MeshError {
  if (!(error instanceof StorageError)) return asMeshError(error);
  switch (error.kind) {
    case "disk_full":
    case "io":
      return new MeshError("insufficient_storage", "The disk refused to store this.", {}, error);
    case "closed":
      return new MeshError("stopping", undefined, {}, error);
    case "busy":
      return new MeshError("daemon_busy", "The disk is busy; try again.", {}, error);
    default:
      return new MeshError("storage_unavailable", undefined, {}, error);
  }
}

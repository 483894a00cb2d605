// Failures of the store as callers see them. A full disk and a store that is away are worth retrying; nothing was
// consumed unless the commit had returned.
import { asMeshError } from "@claudemesh/http/server";
import { MeshError } from "@claudemesh/protocol/errors";
import { StorageError } from "@claudemesh/storage/errors";

export function toMeshError(error: unknown): MeshError {
  if (!(error instanceof StorageError)) return asMeshError(error);
  if (error.kind === "disk_full") return new MeshError("insufficient_storage", undefined, {}, error);
  if (error.kind === "closed") return new MeshError("stopping", undefined, {}, error);
  return new MeshError("storage_unavailable", undefined, {}, error);
}

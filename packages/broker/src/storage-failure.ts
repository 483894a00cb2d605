// Failures of the store as callers see them. A full disk and a store that is away are worth retrying; nothing was
// consumed unless the commit had returned. A store that is there and refuses a row or a statement is a fault of this
// program, or of a change to its tables, and is not reported as being away.
import { asMeshError } from "@claudemesh/http/server";
import { MeshError } from "@claudemesh/protocol/errors";
import { isRefusal, StorageError } from "@claudemesh/storage/errors";

export function toMeshError(error: unknown): MeshError {
  if (!(error instanceof StorageError)) return asMeshError(error);
  if (error.kind === "disk_full") return new MeshError("insufficient_storage", undefined, {}, error);
  if (error.kind === "closed") return new MeshError("stopping", undefined, {}, error);
  if (isRefusal(error)) return new MeshError("internal", undefined, {}, error);
  return new MeshError("storage_unavailable", undefined, {}, error);
}

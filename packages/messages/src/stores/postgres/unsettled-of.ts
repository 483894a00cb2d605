// What a recipient has not confirmed, as a condition on `mesh.delivery_queue`, for the index that is made for it.

/**
 * Rows of `deliveries`, an alias, that wait for `recipient` in `mesh`. The index knows both as one number, and two
 * recipients may share one, so that they are compared themselves as well: in a form that no index serves, since the
 * primary key would pass over everything that is settled.
 */
export function unsettledOf(deliveries: string, mesh: string, recipient: string): string {
  return `${number(`${deliveries}.mesh_id`, `${deliveries}.recipient_pubkey`)} = ${number(mesh, recipient)}
    AND ${deliveries}.mesh_id IS NOT DISTINCT FROM ${mesh}
    AND ${deliveries}.recipient_pubkey IS NOT DISTINCT FROM ${recipient} AND ${deliveries}.settled_at IS NULL`;
}

const number = (mesh: string, recipient: string) => `hashtextextended(${recipient}, uuid_hash_extended(${mesh}, 0))`;

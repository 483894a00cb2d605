// Where a statement runs: on its own, or inside a transaction.

export type Reading = { readonly query: <Row>(text: string, values: readonly unknown[]) => Promise<Row[]> };

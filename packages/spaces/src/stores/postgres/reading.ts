// Where a statement runs, on its own or inside a transaction; and one that waits to be sent with others.

export type Reading = {
  readonly query: <Row>(text: string, values: readonly unknown[], name?: string) => Promise<Row[]>;
};

export type Statement = { readonly text: string; readonly values: readonly unknown[]; readonly name?: string };

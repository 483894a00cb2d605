// Gives one statement to the driver, and throws at once where the driver does not send it.
import pg from "pg";

/**
 * `onRefused` is called before this returns, where the statement will not run: its values cannot be put into the server's
 * format, say. The promise rejects too late for a caller that sends COMMIT without waiting for it.
 */
export function submitStatement(
  client: pg.PoolClient,
  config: pg.QueryConfig,
  onRefused: (error: unknown) => void,
): Promise<pg.QueryResult> {
  const { promise, resolve, reject } = Promise.withResolvers<pg.QueryResult>();
  const refuse = (error: unknown) => {
    onRefused(error);
    reject(error);
  };
  let fail = refuse;
  const query = new pg.Query(config, (error, result) => (error ? fail(error) : resolve(result)));
  const { submit } = query;
  // Some refusals are called back from here, others are what it returns.
  query.submit = (connection) => {
    const refusal: unknown = submit.call(query, connection);
    if (refusal instanceof Error) refuse(refusal);
    return refusal;
  };
  try {
    client.query(query);
  } catch (error) {
    refuse(error);
  }
  fail = reject;
  return promise;
}

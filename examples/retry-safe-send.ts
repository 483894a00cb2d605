// A send that survives the crash of the daemon and its own: node examples/retry-safe-send.ts build-42 "#builds" "green"
// The id comes from the work itself, so that doing the work again sends the same message, and it is one message.
import { connect, DaemonRefused } from "@claudemesh/client";

const [id, to, message] = process.argv.slice(2);
if (id === undefined || to === undefined || message === undefined) {
  throw new Error("Usage: retry-safe-send.ts <id> <to> <message>");
}

const mesh = connect();
try {
  // Where no answer comes, the daemon may have taken it all the same. Asking it again with the same id is safe; sending it in
  // another way would not be.
  const sent = await mesh.send(to, message, { id, retryForMs: 60_000 });
  console.log(`${sent.client_message_id} ${sent.status} duplicate=${sent.duplicate}`);
} catch (error) {
  if (!(error instanceof DaemonRefused)) throw error;
  console.error(`${error.body.error}: ${error.body.message}`);
  process.exitCode = error.status === 409 ? 4 : 1;
}
mesh.close();

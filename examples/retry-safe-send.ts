// A send that survives the crash of the daemon and its own: node examples/retry-safe-send.ts build-42 "#builds" "green"
// The id comes from the work itself, so that whoever does the work again sends the same message, and it is one message.
import { DaemonUnreachable } from "@claudemesh/client/daemon";
import { openLocalDaemon } from "@claudemesh/client/local-daemon";
import { untilAnswered } from "@claudemesh/client/until-answered";

const [id, to, message] = process.argv.slice(2);
if (id === undefined || to === undefined || message === undefined) {
  throw new Error("Usage: retry-safe-send.ts <id> <to> <message>");
}

const daemon = openLocalDaemon();
// Where no answer came, nobody knows whether the daemon took it. Asking it again with the same id is safe; asking anybody
// else would not be.
const { status, body } = await untilAnswered(() => daemon.send({ to, message, client_message_id: id }), {
  onRetry: (why) => console.error(why instanceof DaemonUnreachable ? `no answer: ${why.message}` : `${why.status}`),
});
daemon.close();
if ("error" in body) {
  console.error(`${body.error}: ${body.message}`);
  process.exitCode = status === 409 ? 4 : 1;
} else {
  console.log(`${body.client_message_id} ${body.status} duplicate=${body.duplicate}`);
}

// A WebSocket whose close frames always say why, also those that the library sends for frames it could not read.
import { WebSocket } from "ws";

/** By the code that the library closes with. */
const reasons: Readonly<Record<number, string>> = {
  1002: "the frame breaks the rules of WebSocket",
  1007: "invalid_utf8",
  1008: "the message comes in too many parts",
  1009: "the frame is too large",
};

export class ReasonedSocket extends WebSocket {
  /** The answer to a peer's close frame comes with that frame's own code and reason, or with neither. */
  override close(code?: number, reason?: string | Buffer): void {
    super.close(code, reason ?? (code === undefined ? undefined : (reasons[code] ?? "the connection cannot go on")));
  }
}

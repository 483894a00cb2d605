// Reads text/event-stream: bytes in, events out. Comments and unknown fields are ignored.

export type TextEvent = { readonly kind: string; readonly id: string; readonly data: string };

export async function* readTextEvents(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<TextEvent> {
  const utf8 = new TextDecoder("utf-8", { ignoreBOM: true });
  // The pieces of the line that has not ended yet. They are joined once at its end, and not again for each piece.
  let rest: string[] = [];
  let event = { kind: "message", id: "", data: [] as string[] };
  for await (const chunk of chunks) {
    const [first = "", ...others] = utf8.decode(chunk, { stream: true }).split("\n");
    rest.push(first);
    if (others.length === 0) continue;
    const lines = [rest.join(""), ...others];
    rest = lines.splice(-1);
    for (const line of lines.map((text) => text.replace(/\r$/, ""))) {
      if (line !== "") {
        readField(event, line);
        continue;
      }
      const { kind, id, data } = event;
      if (data.length > 0) yield { kind, id, data: data.join("\n") };
      event = { kind: "message", id: "", data: [] };
    }
  }
}

function readField(event: { kind: string; id: string; data: string[] }, line: string): void {
  const colon = line.indexOf(":");
  const name = colon < 0 ? line : line.slice(0, colon);
  const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
  if (name === "event") event.kind = value;
  else if (name === "id") event.id = value;
  else if (name === "data") event.data.push(value);
}

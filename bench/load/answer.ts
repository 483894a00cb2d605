// As little of HTTP as a caller needs to tell where an answer ends and whether it is the one it wants.

/** How long the answer is, head and body; undefined while its head is not whole, and 0 when the head does not say. */
export function answerLength(bytes: Buffer): number | undefined {
  const text = bytes.toString("latin1");
  const headEnd = text.indexOf("\r\n\r\n");
  if (headEnd < 0) return undefined;
  const length = /\r\ncontent-length: *([0-9]+)/i.exec(text.slice(0, headEnd))?.[1];
  return length === undefined ? 0 : headEnd + 4 + Number(length);
}

export function hasStatus(bytes: Buffer, status: number): boolean {
  const line = `HTTP/1.1 ${status} `;
  return bytes.toString("latin1", 0, line.length) === line;
}

export function timesIn(bytes: Buffer, text: string): number {
  let times = 0;
  for (let at = bytes.indexOf(text); at >= 0; at = bytes.indexOf(text, at + text.length)) times++;
  return times;
}

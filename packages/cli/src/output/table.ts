// Columns for people: as wide as their content, the last one cut to fit the terminal. Without a terminal nothing is
// cut, so that pipes see everything.

export function formatTable(
  header: readonly string[],
  rows: readonly (readonly string[])[],
  columns: number | undefined,
): string {
  const cells = [header, ...rows].map((row) => row.map(printable));
  const widths = header.map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)));
  return cells
    .map((row) => {
      const line = row.map((cell, column) => (column === row.length - 1 ? cell : cell.padEnd(widths[column] ?? 0)));
      return fitLine(line.join("  "), columns);
    })
    .join("\n");
}

function fitLine(line: string, columns: number | undefined): string {
  if (columns === undefined || line.length <= columns) return line;
  return `${line.slice(0, Math.max(columns - 1, 1))}…`;
}

/** Message text comes from other people: control characters must not move a terminal's cursor or change its state. */
function printable(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is replaced
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g, (character) =>
    character === "\n" ? "⏎" : "�",
  );
}

export function formatTime(ms: number): string {
  return new Date(ms).toISOString().replace("T", " ").slice(0, 19);
}

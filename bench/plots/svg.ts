// The few shapes that plots are made of, as text: the same figures give the same bytes. Colours have names, and each
// drawing brings its own ground, so that it reads on a light page and on a dark one.

const style = `<style>
text { font: 12px system-ui, sans-serif; fill: #1f2328 }
.dim { fill: #59636e } .title { font-weight: 600; font-size: 14px } .end { text-anchor: end } .middle { text-anchor: middle }
.ground { fill: #ffffff } .rule { stroke: #d1d9e0 } .mark { stroke: #1f2328; stroke-width: 1.5 }
.first { fill: #0969da; stroke: #0969da } .second { fill: #bc4c00; stroke: #bc4c00 } .miss { fill: #cf222e; stroke: #cf222e }
.line { fill: none; stroke-width: 2 } .dashed { stroke-dasharray: 5 3 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .dim { fill: #9198a1 } .ground { fill: #0d1117 } .rule { stroke: #3d444d } .mark { stroke: #e6edf3 }
.first { fill: #4493f8; stroke: #4493f8 } .second { fill: #db6d28; stroke: #db6d28 } .miss { fill: #f85149; stroke: #f85149 }
.line { fill: none }
}
</style>`;

export function drawing(width: number, height: number, title: string, shapes: readonly string[]): string {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">`,
    `<title>${escapeXml(title)}</title>`,
    style,
    `<rect class="ground" width="${width}" height="${height}" rx="6"/>`,
    text(16, 26, title, "title"),
    ...shapes,
    "</svg>",
    "",
  ].join("\n");
}

export function text(x: number, y: number, words: string, className = ""): string {
  const named = className === "" ? "" : ` class="${className}"`;
  return `<text x="${at(x)}" y="${at(y)}"${named}>${escapeXml(words)}</text>`;
}

export function line(from: readonly [number, number], to: readonly [number, number], className: string): string {
  return `<line x1="${at(from[0])}" y1="${at(from[1])}" x2="${at(to[0])}" y2="${at(to[1])}" class="${className}"/>`;
}

export function bar(x: number, y: number, width: number, height: number, className: string): string {
  return `<rect x="${at(x)}" y="${at(y)}" width="${at(width)}" height="${at(height)}" rx="2" class="${className}"/>`;
}

export function dot(x: number, y: number, className: string): string {
  return `<circle cx="${at(x)}" cy="${at(y)}" r="3" class="${className}"/>`;
}

export function path(points: readonly (readonly [number, number])[], className: string): string {
  const steps = points.map(([x, y], index) => `${index === 0 ? "M" : "L"}${at(x)} ${at(y)}`).join("");
  return `<path d="${steps}" class="${className}"/>`;
}

/** A tenth of a pixel is finer than anyone sees. */
function at(value: number): string {
  return String(Math.round(value * 10) / 10);
}

function escapeXml(words: string): string {
  return words.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}

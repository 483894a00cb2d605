// Draws a CurvePlot: two panels per row, two lines at most in each, one solid and one dashed.
import type { CurveLine, CurvePlot } from "./plot.ts";
import { dot, drawing, line, path, text } from "./svg.ts";

const panelWidth = 430;
const panelHeight = 190;
const top = 56;
const inner = { left: 52, right: 44, top: 30, bottom: 34 };
const looks = ["first", "second"] as const;
/** Room above what stands still, so that a curve that grows looks like one. */
const leastTop = 2;

type Panel = CurvePlot["panels"][number];
type Scales = { readonly x: (value: number) => number; readonly y: (value: number) => number };

export function drawCurves(plot: CurvePlot): string {
  const rows = Math.ceil(plot.panels.length / 2);
  const most = Math.max(leastTop, ...pointsOf(plot.panels).map(({ y }) => y.upperQuartile));
  const shapes = plot.panels.flatMap((panel, at) => {
    const left = (at % 2) * panelWidth;
    const upper = top + Math.floor(at / 2) * panelHeight;
    return drawPanel(panel, { left, upper, most, xs: xsOf(plot) });
  });
  const height = top + rows * panelHeight + 24;
  const legend = (plot.panels[0]?.lines ?? []).flatMap(({ label }, at) => drawKey(label, at));
  const axis = text(panelWidth, height - 12, plot.xLabel, "dim middle");
  return drawing(2 * panelWidth, height, plot.title, [...legend, ...shapes, axis]);
}

const pointsOf = (panels: readonly Panel[]) => panels.flatMap(({ lines }) => lines.flatMap(({ points }) => points));

function xsOf({ panels }: CurvePlot): number[] {
  return [...new Set(pointsOf(panels).map(({ x }) => x))].sort((a, b) => a - b);
}

function drawKey(label: string, at: number): string[] {
  const x = 2 * panelWidth - 230 + at * 110;
  return [line([x, 22], [x + 24, 22], lineClass(at)), text(x + 30, 26, label)];
}

const lineClass = (at: number) => `${looks[at % looks.length]} line${at % 2 === 1 ? " dashed" : ""}`;

type Frame = {
  readonly left: number;
  readonly upper: number;
  readonly most: number;
  readonly xs: readonly number[];
};

function drawPanel(panel: Panel, frame: Frame): string[] {
  const { left, upper, most, xs } = frame;
  const [from, to] = [left + inner.left, left + panelWidth - inner.right];
  const [high, low] = [upper + inner.top, upper + panelHeight - inner.bottom];
  const decades = Math.log10((xs.at(-1) ?? 1) / (xs[0] ?? 1)) || 1;
  const scales: Scales = {
    x: (value) => from + ((to - from) * Math.log10(value / (xs[0] ?? 1))) / decades,
    y: (value) => low - ((low - high) * value) / most,
  };
  const levels = most <= 4 ? [0, 1, 2, 3, 4].filter((level) => level <= most) : [0, most / 2, most];
  return [
    text(from, upper + 14, panel.title),
    ...levels.flatMap((level) => [
      line([from, scales.y(level)], [to, scales.y(level)], "rule"),
      text(from - 8, scales.y(level) + 4, level.toFixed(levels.length > 3 || most <= 4 ? 0 : 1), "dim end"),
    ]),
    ...xs.map((x) => text(scales.x(x), low + 18, x.toLocaleString("en-US"), "dim middle")),
    ...panel.lines.flatMap((each, at) => drawLine(each, at, scales, panel.lines)),
  ];
}

function drawLine(each: CurveLine, at: number, scales: Scales, all: readonly CurveLine[]): string[] {
  const points = each.points.map(({ x, y }) => [scales.x(x), scales.y(y.median)] as const);
  return [
    path(points, lineClass(at)),
    ...points.map(([x, y]) => dot(x, y, looks[at % looks.length] ?? "first")),
    ...each.points.map(({ x, y }) => {
      const above = isAbove(all, at, x, y.median);
      return text(scales.x(x), scales.y(y.median) + (above ? -8 : 18), y.median.toFixed(2), "middle");
    }),
  ];
}

/** Numbers of two lines go to either side of them, so that none covers the other. */
function isAbove(all: readonly CurveLine[], own: number, x: number, value: number): boolean {
  const other = all[1 - own]?.points.find((point) => point.x === x)?.y.median;
  if (other === undefined || other === value) return own === 0;
  return value > other;
}

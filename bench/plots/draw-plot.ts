// From a report to its drawings: those that its scenario asked for, and one of its promises.
import { formatRatio } from "../report.ts";
import type { ScenarioReport } from "../scenarios/scenario.ts";
import { drawCurves } from "./curve-plot.ts";
import type { Plot, RangeRow } from "./plot.ts";
import { drawRange } from "./range-plot.ts";

export type Drawing = { readonly file: string; readonly title: string; readonly svg: string };

/** File names are relative to the folder of drawings. */
export function drawReport(report: ScenarioReport): Drawing[] {
  if (report.tables.length === 0) return [];
  return [...(report.plots ?? []), ...promisesOf(report)].map((plot) => ({
    file: `${report.scenario}-${plot.name}.svg`,
    title: plot.title,
    svg: plot.kind === "range" ? drawRange(plot) : drawCurves(plot),
  }));
}

function promisesOf({ title, bars }: ScenarioReport): Plot[] {
  const rows = bars.flatMap(({ name, ratio, limit, kind }): RangeRow[] =>
    ratio === undefined ? [] : [{ label: name, value: ratio, limit: { at: limit, kind } }],
  );
  if (rows.length === 0) return [];
  const digits = formatRatio(0).length - 2;
  return [
    { kind: "range", name: "bars", title: `${title}: measured beside what is asked`, scale: "linear", digits, rows },
  ];
}

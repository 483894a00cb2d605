// A strict reader of Prometheus's text format, version 0.0.4: what it takes, a Prometheus server takes. Throws where a
// line is not of the format, a family comes twice or is mixed with another, or a sample has no family.

export type MetricFamily = {
  readonly type: string;
  readonly help: string;
  readonly samples: {
    readonly name: string;
    readonly labels: Readonly<Record<string, string>>;
    readonly value: number;
  }[];
};

const namePattern = "[a-zA-Z_:][a-zA-Z0-9_:]*";
const labelPattern = '[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\\\\n]|\\\\["\\\\n])*"';
const sampleLine = new RegExp(`^(${namePattern})(?:\\{((?:${labelPattern})(?:,${labelPattern})*)?,?\\})? (\\S+)$`);
const valuePattern = /^(?:[+-]?(?:Inf|[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)|NaN)$/i;
const types = new Set(["counter", "gauge", "histogram", "summary", "untyped"]);

export function readPrometheusText(text: string): Map<string, MetricFamily> {
  if (!text.endsWith("\n")) throw new Error("the last line has no end");
  const families = new Map<string, MetricFamily>();
  const seen = new Set<string>();
  let help: { name: string; text: string } | undefined;
  let current: { name: string; family: MetricFamily } | undefined;
  for (const line of text.slice(0, -1).split("\n")) {
    if (line === "") continue;
    const [, word, name = "", rest = ""] = new RegExp(`^# (HELP|TYPE) (${namePattern}) (.*)$`).exec(line) ?? [];
    if (word === "HELP") {
      help = { name, text: rest };
    } else if (word === "TYPE") {
      if (families.has(name)) throw new Error(`${name} comes twice`);
      if (help?.name !== name || help.text.trim() === "") throw new Error(`${name} has no help before its type`);
      if (!types.has(rest)) throw new Error(`${rest} is no type`);
      current = { name, family: { type: rest, help: help.text, samples: [] } };
      families.set(name, current.family);
    } else {
      readSample(line, current, seen);
    }
  }
  return families;
}

function readSample(
  line: string,
  current: { name: string; family: MetricFamily } | undefined,
  seen: Set<string>,
): void {
  const [, name = "", labelText = "", valueText = ""] = sampleLine.exec(line) ?? [];
  if (name === "" || !valuePattern.test(valueText)) throw new Error(`not a sample: ${line}`);
  const suffixes = current?.family.type === "histogram" ? ["_bucket", "_sum", "_count"] : [""];
  if (current === undefined || !suffixes.some((suffix) => name === current.name + suffix)) {
    throw new Error(`${name} stands outside of its family`);
  }
  const key = `${name}{${labelText}}`;
  if (seen.has(key)) throw new Error(`${key} is there twice`);
  seen.add(key);
  const labels = [...labelText.matchAll(/([a-zA-Z0-9_]+)="((?:[^"\\]|\\.)*)"/g)];
  if (new Set(labels.map(([, label]) => label)).size !== labels.length) throw new Error(`${key} says a label twice`);
  const value = Number(valueText.replace(/inf$/i, "Infinity"));
  if (current.family.type === "counter" && !(value >= 0)) throw new Error(`${name} counts backwards`);
  current.family.samples.push({
    name,
    labels: Object.fromEntries(labels.map(([, label = "", text = ""]) => [label, text])),
    value,
  });
}

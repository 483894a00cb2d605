// Changes one section of a TOML text and nothing else: comments, order and unknown keys stay. Pure; the parser decides
// whether an edit had the wanted result.
import { isDeepStrictEqual } from "node:util";
import { parse, stringify, type TomlTable } from "smol-toml";

type Values = Readonly<Record<string, string | readonly string[]>>;

/** `text` is valid TOML. Keys of the section that `values` does not name are kept. */
export function setTomlSection(text: string, section: string, values: Values): string {
  const wanted = withSection(parse(text), section, values);
  const edited = editLines(text, section, values);
  if (saysTheSame(edited, wanted)) return edited;
  // The section is written in a form that an edit by lines cannot handle (inline, dotted, inside a multi-line text), so
  // the whole text is written anew.
  return stringify(wanted);
}

function withSection(table: TomlTable, section: string, values: Values): TomlTable {
  const old = table[section];
  const kept = typeof old === "object" && !Array.isArray(old) && !(old instanceof Date) ? old : {};
  return { ...table, [section]: { ...kept, ...(values as TomlTable) } };
}

function saysTheSame(text: string, wanted: TomlTable): boolean {
  try {
    // Both go through the parser, so that prototypes and number types compare alike.
    return isDeepStrictEqual(parse(text), parse(stringify(wanted)));
  } catch {
    // Whatever the parser rejects in the edit, the edit is not used.
    return false;
  }
}

function editLines(text: string, section: string, values: Values): string {
  const lines = text === "" ? [] : text.replace(/\n$/, "").split("\n");
  const header = lines.findIndex((line) => sectionName(line) === section);
  if (header < 0) {
    const gap = lines.length === 0 ? [] : [""];
    return `${[...lines, ...gap, `[${section}]`, ...Object.entries(values).map(assignment)].join("\n")}\n`;
  }
  const next = lines.findIndex((line, at) => at > header && line.trimStart().startsWith("["));
  const end = next < 0 ? lines.length : next;
  const body = lines.slice(header + 1, end);
  const missing: string[] = [];
  for (const entry of Object.entries(values)) {
    const at = body.findIndex((line) => line.split("=", 1)[0]?.trim() === entry[0]);
    if (at < 0) missing.push(assignment(entry));
    else body[at] = assignment(entry);
  }
  return `${[...lines.slice(0, header + 1), ...missing, ...body, ...lines.slice(end)].join("\n")}\n`;
}

function sectionName(line: string): string | undefined {
  return /^\s*\[\s*([A-Za-z0-9_-]+)\s*\]\s*(?:#.*)?$/.exec(line)?.[1];
}

function assignment([key, value]: readonly [string, string | readonly string[]]): string {
  return stringify({ [key]: value }).trimEnd();
}

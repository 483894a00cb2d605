// The launchd property list of one of our programs: an agent of the user, or a daemon of the system that runs as the user who
// owns the home. launchd keeps no count of failed starts, so the pause between them is what bounds them.
import { endsForGoodVariable } from "../daemon/daemon-end.ts";
import { checkWritable, type ServiceSpec, serviceEnvironment } from "./service-spec.ts";

export function launchdLabel({ program }: Pick<ServiceSpec, "program">): string {
  return program.label;
}

type PlistValue = string | number | boolean | readonly PlistValue[] | { readonly [key: string]: PlistValue };

export function launchdPlist(spec: ServiceSpec): string {
  checkWritable(spec);
  const value: PlistValue = {
    Label: launchdLabel(spec),
    ProgramArguments: [spec.launcher, ...spec.program.args],
    EnvironmentVariables: { ...serviceEnvironment(spec), [endsForGoodVariable]: "0" },
    WorkingDirectory: spec.program.folder,
    RunAtLoad: true,
    // Ending as asked is final; anything else is started again, after a pause.
    KeepAlive: { SuccessfulExit: false },
    ThrottleInterval: 30,
    ExitTimeOut: 15,
    ProcessType: "Background",
    Umask: 0o077,
    ...(spec.scope === "system" ? { UserName: spec.owner.name } : {}),
  };
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">',
    '<plist version="1.0">',
    element(value, ""),
    "</plist>",
    "",
  ].join("\n");
}

/** The lines by which a property list is known as one that was written for this home. */
export function launchdHomeMark(spec: ServiceSpec): string {
  return entry("CLAUDEMESH_HOME", spec.home, "    ");
}

function element(value: PlistValue, indent: string): string {
  if (typeof value === "string") return `${indent}<string>${escapeXml(value)}</string>`;
  if (typeof value === "number") return `${indent}<integer>${value}</integer>`;
  if (typeof value === "boolean") return `${indent}<${value}/>`;
  const inner = `${indent}  `;
  if (isList(value))
    return wrap(
      "array",
      indent,
      value.map((each) => element(each, inner)),
    );
  return wrap(
    "dict",
    indent,
    Object.entries(value).map(([key, each]) => entry(key, each, inner)),
  );
}

function isList(value: PlistValue): value is readonly PlistValue[] {
  return Array.isArray(value);
}

function entry(key: string, value: PlistValue, indent: string): string {
  return `${indent}<key>${escapeXml(key)}</key>\n${element(value, indent)}`;
}

function wrap(name: string, indent: string, lines: readonly string[]): string {
  return [`${indent}<${name}>`, ...lines, `${indent}</${name}>`].join("\n");
}

function escapeXml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

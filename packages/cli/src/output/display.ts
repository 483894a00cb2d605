// How this process shows things to people: in which time, with or without colour. Set once, by the frame around every
// command, from its options and its shell; everything that formats asks here, so that a table deep inside a command
// shows times as the command's own lines do. What programs read (--json) asks nothing here.

type Display = {
  /** Times as ISO 8601 in UTC, with nothing relative beside them. */
  readonly utc: boolean;
  readonly colours: boolean;
  readonly nowMs: () => number;
};

const plainly: Display = { utc: false, colours: false, nowMs: Date.now };

let display = plainly;

/** What is not given is as it is for a command without options whose output is no terminal. */
export function setDisplay(given: Partial<Display>): void {
  display = { ...plainly, ...given };
}

export function currentDisplay(): Display {
  return display;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** NO_COLOR and a terminal that knows no colour always win; FORCE_COLOR stands in for a terminal. */
export function wantsColours(env: Environment, isTerminal: boolean): boolean {
  if (env.NO_COLOR || env.TERM === "dumb") return false;
  const { FORCE_COLOR: forced } = env;
  if (forced === "0" || forced === "false") return false;
  return isTerminal || (forced !== undefined && forced !== "");
}

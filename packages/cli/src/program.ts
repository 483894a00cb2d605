// Makes commander's tree from the command table. Names and summaries are always there, for help and for refusing what
// does not exist; what a command takes is loaded only for those that are wanted.
import { styleText } from "node:util";
import { Command } from "commander";
import { type CommandEntry, commandEntries, commandGroups, helpGroups } from "./command-table.ts";
import { exitCodeMeanings } from "./exit-codes.ts";
import type { Shell } from "./shell.ts";

const exitCodeLines = exitCodeMeanings.map(([code, meaning]) => `  ${code}  ${meaning}`);

/** The whole tree where `wanted` says yes to every entry. */
export async function buildProgram(shell: Shell, wanted: (entry: CommandEntry) => boolean): Promise<Command> {
  const program = new Command("claudemesh")
    .description("The coordination layer for coding agents and the machines they run on.")
    .version(shell.version)
    .commandsGroup(helpGroups[0]?.heading ?? "")
    .helpCommand("help [command]", "what a command takes")
    .addHelpText("after", `\nExit codes:\n${exitCodeLines.join("\n")}`);
  configure(program, shell);
  const nodes = new Map<string, Command>([["", program]]);
  const loadWhole = () => buildProgram(shell, () => true);
  for (const entry of commandEntries.toSorted((a, b) => orderInHelp(a) - orderInHelp(b))) {
    const command = addNode(nodes, entry.path, entry.summary, shell);
    if (wanted(entry)) (await entry.load())(command, shell, loadWhole);
  }
  return program;
}

/** Of its group, and then of its own first word. */
function orderInHelp({ path }: CommandEntry): number {
  const [first = ""] = path.split(" ", 1);
  const group = helpGroups.findIndex(({ words }) => words.includes(first));
  return group * 100 + (helpGroups[group]?.words.indexOf(first) ?? 0);
}

/** The longest command that the first words name. Options before a command are not a thing here. */
export function findEntry(argv: readonly string[]): CommandEntry | undefined {
  const words = (argv[0] === "help" ? argv.slice(1) : argv).slice(0, 3);
  for (let count = words.length; count > 0; count--) {
    const path = words.slice(0, count).join(" ");
    const entry = commandEntries.find((candidate) => candidate.path === path);
    if (entry !== undefined) return entry;
  }
  return undefined;
}

/** A group stands where its first command stands. */
function addNode(nodes: Map<string, Command>, path: string, summary: string, shell: Shell): Command {
  const cut = path.lastIndexOf(" ");
  const above = cut < 0 ? "" : path.slice(0, cut);
  const parent = nodes.get(above) ?? addNode(nodes, above, commandGroups[above] ?? "", shell);
  const command = parent
    .command(path.slice(cut + 1))
    .description(summary)
    .summary(summary);
  configure(command, shell);
  const group = helpGroups.find(({ words }) => words.includes(path));
  if (group !== undefined) command.helpGroup(group.heading);
  nodes.set(path, command);
  return command;
}

function configure(command: Command, shell: Shell): void {
  command
    .configureHelp({ styleTitle: (title) => styleText("bold", title, { validateStream: false }) })
    .exitOverride()
    .showHelpAfterError("Run it with --help to see what it takes.")
    .configureOutput({
      writeOut: (text) => shell.out(text.replace(/\n$/, "")),
      writeErr: (text) => shell.err(text.replace(/\n$/, "")),
      getOutHasColors: () => shell.colours,
      getErrHasColors: () => false,
      getOutHelpWidth: () => shell.columns ?? 80,
      getErrHelpWidth: () => shell.columns ?? 80,
    });
}

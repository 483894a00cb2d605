// The completion script for fish: one line per word or option, each on the condition of standing at its command.
import { type CompletedCommand, type CompletedOption, optionsWithValues, type Values } from "./completion-model.ts";

export function fishCompletion(commands: readonly CompletedCommand[]): string {
  const paths = commands.map(({ path }) => path).filter((path) => path !== "");
  const valued = optionsWithValues(commands).map(({ words }) => words);
  return `# fish completion for claudemesh.  claudemesh completion fish | source
function __claudemesh_at
    set -l at ''
    set -l skip 0
    for word in (commandline -opc)[2..]
        if test $skip = 1
            set skip 0
            continue
        end
        switch "$at $word"
            case ${paths.map(fishQuoted).join(" ")}
                set at "$at $word"
            case ${valued.map(fishQuoted).join(" ")}
                set skip 1
        end
    end
    test "$at" = "$argv[1]"
end

function __claudemesh_meshes
    set -l home $CLAUDEMESH_HOME
    test -n "$home"; or set home $HOME/.claudemesh
    for file in $home/daemon/*/config.toml
        basename (dirname $file)
    end
end

complete -c claudemesh -f
${commands.flatMap(commandLines).join("\n")}
`;
}

function commandLines({ path, subcommands, options, argumentWords }: CompletedCommand): string[] {
  const start = `complete -c claudemesh -n ${fishQuoted(`__claudemesh_at ${fishQuoted(path)}`)}`;
  return [
    ...subcommands.map(({ name, description }) => `${start} -a ${fishQuoted(name)} -d ${fishQuoted(description)}`),
    ...argumentWords.map((word) => `${start} -a ${fishQuoted(word)}`),
    ...options.map((option) => `${start} ${optionWords(option)}`),
  ];
}

function optionWords({ flag, description, values }: CompletedOption): string {
  const name = `-l ${fishQuoted(flag.slice(2))} -d ${fishQuoted(description)}`;
  return values === undefined ? name : `${name} ${valueWords(values)}`;
}

function valueWords(values: Values): string {
  if (values.kind === "files") return "-r -F";
  if (values.kind === "meshes") return `-x -a ${fishQuoted("(__claudemesh_meshes)")}`;
  return values.kind === "words" ? `-x -a ${fishQuoted(values.words.join(" "))}` : "-x";
}

/** In fish's single quotes, backslash and quote are escaped by a backslash. */
function fishQuoted(text: string): string {
  return `'${text.replace(/['\\]/g, "\\$&")}'`;
}

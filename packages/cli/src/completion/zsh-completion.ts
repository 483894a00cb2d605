// The completion script for zsh: a file for a folder of $fpath, or to be sourced after compinit.
import {
  alternatives,
  type CompletedCommand,
  type CompletedOption,
  groupByReply,
  optionsWithValues,
  singleQuoted,
  type Values,
} from "./completion-model.ts";

export function zshCompletion(commands: readonly CompletedCommand[]): string {
  const valued = optionsWithValues(commands);
  const paths = commands.map(({ path }) => path).filter((path) => path !== "");
  return `#compdef claudemesh
# zsh completion for claudemesh.  source <(claudemesh completion zsh)
_claudemesh() {
  local at='' skip='' word
  local -a found flags
  integer i
  for (( i = 2; i < CURRENT; i++ )); do
    word=\${words[i]}
    if [[ -n $skip ]]; then skip=''; continue; fi
    case "$at $word" in
      (${alternatives(paths)}) at="$at $word" ;;
      (${alternatives(valued.map(({ words }) => words))}) skip=1 ;;
    esac
  done
  if [[ -n $skip ]]; then
    case "$at \${words[CURRENT-1]}" in
${[...groupByReply(valued, replyFor)].map(([reply, at]) => `      (${alternatives(at)}) ${reply} ;;`).join("\n")}
    esac
    return
  fi
  case "$at" in
${commands.map(commandCase).join("\n")}
  esac
  if [[ $PREFIX == -* || \${#found} -eq 0 ]]; then
    _describe -t options option flags
  else
    _describe -t commands command found
  fi
}
if [[ \${funcstack[1]} == _claudemesh ]]; then
  _claudemesh "$@"
else
  compdef _claudemesh claudemesh
fi
`;
}

function replyFor(values: Values): string | undefined {
  switch (values.kind) {
    case "any":
      return undefined;
    case "files":
      return "_files";
    case "meshes":
      return `found=(\${CLAUDEMESH_HOME:-$HOME/.claudemesh}/daemon/*/config.toml(N:h:t)); compadd -a found`;
    case "words":
      return `compadd -- ${values.words.map(singleQuoted).join(" ")}`;
  }
}

function commandCase({ path, subcommands, options, argumentWords }: CompletedCommand): string {
  const found = [...subcommands.map(({ name, description }) => described(name, description)), ...argumentWords];
  const flags = options.map(({ flag, description }: CompletedOption) => described(flag, description));
  const list = (items: readonly string[]) => items.map(singleQuoted).join(" ");
  return `    (${singleQuoted(path)}) found=(${list(found)}); flags=(${list(flags)}) ;;`;
}

/** The first colon parts a word from its description. */
function described(word: string, description: string): string {
  return `${word.replaceAll(":", "\\:")}:${description}`;
}

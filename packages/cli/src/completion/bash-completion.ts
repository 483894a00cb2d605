// The completion script for bash, from 3.2 on, which is what macOS has: no associative arrays, no mapfile.
import {
  alternatives,
  type CompletedCommand,
  groupByReply,
  optionsWithValues,
  singleQuoted,
  type Values,
} from "./completion-model.ts";

export function bashCompletion(commands: readonly CompletedCommand[]): string {
  const valued = optionsWithValues(commands);
  const paths = commands.map(({ path }) => path).filter((path) => path !== "");
  return `# bash completion for claudemesh.  source <(claudemesh completion bash)
_claudemesh_meshes() {
  local file
  for file in "\${CLAUDEMESH_HOME:-$HOME/.claudemesh}"/daemon/*/config.toml; do
    [ -e "$file" ] || continue
    file=\${file%/config.toml}
    printf '%s\\n' "\${file##*/}"
  done
}

_claudemesh() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} at='' skip='' words='' flags='' word i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    if [ -n "$skip" ]; then skip=''; continue; fi
    case "$at $word" in
      ${alternatives(paths)}) at="$at $word" ;;
      ${alternatives(valued.map(({ words }) => words))}) skip=1 ;;
    esac
  done
  if [ -n "$skip" ]; then
    case "$at $prev" in
${[...groupByReply(valued, replyFor)].map(([reply, at]) => `      ${alternatives(at)}) ${reply} ;;`).join("\n")}
    esac
    return
  fi
  case "$at" in
${commands.map(commandCase).join("\n")}
  esac
  case "$cur" in
    -*) words=$flags ;;
    *) [ -n "$words" ] || words=$flags ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -F _claudemesh claudemesh
`;
}

function replyFor(values: Values): string | undefined {
  switch (values.kind) {
    case "any":
      return undefined;
    case "files":
      return `compopt -o filenames 2>/dev/null; local IFS=$'\\n'; COMPREPLY=($(compgen -f -- "$cur"))`;
    case "meshes":
      return 'COMPREPLY=($(compgen -W "$(_claudemesh_meshes)" -- "$cur"))';
    case "words":
      return `COMPREPLY=($(compgen -W ${singleQuoted(values.words.join(" "))} -- "$cur"))`;
  }
}

function commandCase({ path, subcommands, options, argumentWords }: CompletedCommand): string {
  const words = [...subcommands.map(({ name }) => name), ...argumentWords].join(" ");
  const flags = options.map(({ flag }) => flag).join(" ");
  return `    ${singleQuoted(path)}) words=${singleQuoted(words)} flags=${singleQuoted(flags)} ;;`;
}

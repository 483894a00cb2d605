#!/bin/sh
# Runs a command for what arrives, one page of messages at a time as JSON on its standard input:
#   examples/on-message.sh place.txt jq -r '.items[].body'
# The file keeps the place: it moves on only when the command has succeeded, so a crash repeats a page and loses none.
# Nothing but a shell, sed and claudemesh is needed. Ctrl-C ends it.
set -u
place=$1
shift
# Nothing yet: begin with whatever is in the inbox.
[ -s "$place" ] && from="--cursor $(cat "$place")" || from="--since 0"

while :; do
  # shellcheck disable=SC2086 # two words on purpose
  page=$(claudemesh inbox --wait 30s --json $from)
  code=$?
  cursor=$(printf '%s\n' "$page" | tail -n 1 | sed -n 's/.*"next_cursor":"\([0-9A-Z]*\)".*/\1/p')
  case $code in
    0) printf '%s\n' "$page" | "$@" || exit 1 ;;
    1) [ -n "$cursor" ] || exit 1 ;; # nothing arrived in time, or a failure without a place to go on from
    3 | 6) sleep 1 && continue ;;    # no daemon yet, or a busy one
    *) exit "$code" ;;
  esac
  printf '%s' "$cursor" > "$place.new" && mv "$place.new" "$place"
  from="--cursor $cursor"
done

#!/bin/bash
# tuck-corpus as a person meets it: what it prints, where it complains, what it exits with.
# Usage: program_test.sh PATH_TO_TUCK_CORPUS
set -u
program=$1
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
failures=0

# expect STATUS PATTERN ARGUMENTS…: exit status, and an extended regular expression for one of the lines.
expect() {
  local status=$1 pattern=$2 output got
  shift 2
  output=$("$program" "$@" 2>&1)
  got=$?
  if ((got != status)) || ! grep -Eq "$pattern" <<<"$output"; then
    echo "FAILED: $* exited with $got instead of $status, or printed no /$pattern/:"
    echo "$output"
    failures=$((failures + 1))
  fi
}

expect 0 '1000 synthetic pages .*seed 3' synthetic --pages 1000 --seed 3 "$directory/a.pages"
expect 0 '^a +1000 ' info "$directory/a.pages"
expect 0 '^all +2000 ' info "$directory/a.pages" "$directory/a.pages"
"$program" synthetic --pages 1000 --seed 3 "$directory/b.pages" >/dev/null
cmp "$directory/a.pages" "$directory/b.pages" || failures=$((failures + 1))

sleep 60 &
subject=$!
expect 0 'c.pages: [0-9]+ pages' capture --pid $subject "$directory/c.pages"
expect 0 '^c +[0-9]+ ' info "$directory/c.pages"
kill $subject
wait $subject 2>/dev/null
expect 1 "there is no process $subject" capture --pid $subject "$directory/d.pages"
[[ -e $directory/d.pages || -e $directory/d.pages.part ]] && failures=$((failures + 1))

expect 2 'subcommand' || true
expect 2 'pages' synthetic "$directory/e.pages"
expect 2 'FILE' info
expect 2 'pid' capture "$directory/e.pages"
expect 1 'cannot open' info "$directory/none.pages"
expect 1 'is not a corpus' info "$0"
expect 1 'cannot write' synthetic --pages 10 "$directory/none/e.pages"
exit $((failures > 0))

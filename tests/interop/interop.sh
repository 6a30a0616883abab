# Shared by the interop tests: sourced, never run. TUCK names the program under test.
# Each script serves its own disks on sockets in a folder of its own, which is gone afterwards.
# shellcheck shell=bash

set -euo pipefail

# The distribution's tools first: libnbd's Python module belongs to its own interpreter.
export PATH=/usr/bin:/bin:/usr/sbin:/sbin:$PATH

: "${TUCK:?the program under test}"
work=$(mktemp -d /tmp/tuck-interop.XXXXXX)
socket=$work/sock
control=$work/control
# shellcheck disable=SC2034  # for the scripts
uri="nbd+unix:///?socket=$socket"
server=''

end_all() {
  local status=$?
  if [[ -n $server ]] && kill -KILL "$server" 2>/dev/null; then
    wait "$server" 2>/dev/null || true
  fi
  if ((status != 0 && status != 77)) && [[ -s $work/server.log ]]; then
    echo "--- the server's log, its end:"
    tail -n 30 "$work/server.log"
  fi
  rm -rf "$work"
}
trap end_all EXIT
trap 'exit 1' INT TERM

skip() {
  echo "SKIPPED: $*"
  exit 77
}

fail() {
  echo "FAILED: $*"
  exit 1
}

# needs PROGRAM PACKAGE
needs() {
  command -v "$1" >/dev/null || skip "no $1 (package $2)"
}

# start_server OPTION...: returns when it answers.
start_server() {
  "$TUCK" serve --unix "$socket" --control "$control" "$@" >>"$work/server.log" 2>&1 &
  server=$!
  local i
  for ((i = 0; i < 200; i++)); do
    "$TUCK" stat --control "$control" >/dev/null 2>&1 && return
    kill -0 "$server" 2>/dev/null || fail "the server ended instead of serving"
    sleep 0.05
  done
  fail "the server did not answer within 10 s"
}

# SIGTERM; the server must end by itself and say that it was well.
stop_server() {
  kill -TERM "$server"
  local i status=0
  for ((i = 0; i < 200; i++)); do
    kill -0 "$server" 2>/dev/null || break
    sleep 0.05
  done
  ! kill -0 "$server" 2>/dev/null || fail "the server did not end within 10 s of SIGTERM"
  wait "$server" || status=$?
  server=''
  ((status == 0)) || fail "the server ended with status $status"
}

# expect WHAT COMMAND...: the command must succeed.
expect() {
  local what=$1
  shift
  "$@" || fail "$what"
  echo "ok: $what"
}

# expect_equal WHAT WANTED GOT
expect_equal() {
  [[ $2 == "$3" ]] || fail "$1: wanted '$2', got '$3'"
  echo "ok: $1 is $2"
}

# json EXPRESSION: of the JSON document on standard input, called d.
json() {
  python3 -c 'import json, sys
d = json.load(sys.stdin)
print(eval(sys.argv[1]))' "$1"
}

# pages FILE MIB: compressible pages, each different, some zero, some incompressible.
pages() {
  python3 - "$1" "$2" "${TUCK_SEED:-1}" <<'END'
import random, sys
name, mib, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
print(f"pages with TUCK_SEED={seed}")
rng = random.Random(seed)
words = [rng.randbytes(8) for _ in range(256)]
with open(name, "wb") as out:
    for page in range(mib * 256):
        kind = rng.random()
        if kind < 0.1:
            data = bytes(4096)
        elif kind < 0.2:
            data = rng.randbytes(4096)
        else:
            data = page.to_bytes(8, "little") + rng.randbytes(800)
            data += b"".join(rng.choices(words, k=411))
        out.write(data[:4096])
END
}

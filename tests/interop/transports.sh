#!/usr/bin/env bash
# The ways to a disk other than a Unix socket of its own: loopback TCP, a socket that a service
# manager hands over (libnbd plays that part), standard input and output.
source "$(dirname "${BASH_SOURCE[0]}")/interop.sh"
needs nbdinfo libnbd-bin
needs nbdcopy libnbd-bin
needs nbdsh python3-libnbd
needs python3 python3

pages "$work/data" 16

# A port that is free now may be taken by the time that it is used, so that several are tried.
tcp_server() {
  local port
  for _ in {1..10}; do
    port=$((20000 + RANDOM % 10000))
    "$TUCK" serve --listen "127.0.0.1:$port" --unix "$socket" --control "$control" --size 16M \
      >>"$work/server.log" 2>&1 &
    server=$!
    tcp="nbd://127.0.0.1:$port"
    for _ in {1..100}; do
      "$TUCK" stat --control "$control" >/dev/null 2>&1 && return
      kill -0 "$server" 2>/dev/null || break
      sleep 0.05
    done
    wait "$server" || true
  done
  fail "no port of ten could be had"
}
tcp_server
expect_equal "size over TCP" $((16 << 20)) "$(nbdinfo --size "$tcp")"
expect "in over TCP" nbdcopy --connections=4 "$work/data" "$tcp"
expect "out over TCP, the same" bash -c "nbdcopy --connections=4 '$tcp' - | cmp - '$work/data'"
expect "out over the Unix socket, the same disk" bash -c "nbdcopy '$uri' - | cmp - '$work/data'"
stop_server

status=0
"$TUCK" serve --listen 192.0.2.1:10809 --size 1M --control none >"$work/refused.log" 2>&1 || status=$?
((status != 0)) || fail "an address that is not loopback was served without TLS"
echo "ok: other addresses are refused, with status $status"

activated=("$TUCK" serve --size 16M --control none)
expect_equal "size over a socket handed over" $((16 << 20)) "$(nbdinfo --size -- [ "${activated[@]}" ])"
expect "in over a socket handed over" nbdcopy -- "$work/data" [ "${activated[@]}" ]

expect "a conversation on standard input and output" nbdsh -c "
h.connect_command(['$TUCK', 'serve', '--stdio', '--size', '16M'])
data = open('$work/data', 'rb').read()
for offset in range(0, len(data), 1 << 20):
    h.pwrite(data[offset:offset + (1 << 20)], offset)
for offset in range(0, len(data), 1 << 20):
    assert h.pread(1 << 20, offset) == data[offset:offset + (1 << 20)]
h.shutdown()
"

#!/usr/bin/env bash
# What is trimmed goes back to the system: by the server's own ledger, and by what the kernel says
# is resident in the server.
source "$(dirname "${BASH_SOURCE[0]}")/interop.sh"
needs nbdcopy libnbd-bin
needs nbdsh python3-libnbd
needs python3 python3

start_server --size 256M

pool() { "$TUCK" stat --control "$control" --json | json 'd["memory"]["resident_bytes"]'; }
resident() { echo $(($(awk '/^VmRSS/ { print $2 }' "/proc/$server/status") << 10)); }

# wait_for_pool WHAT BYTES: until the pool is no larger. Freed memory goes back in the background.
wait_for_pool() {
  local i now
  for ((i = 0; i < 300; i++)); do
    now=$(pool)
    ((now <= $2)) && echo "ok: $1: pool $now bytes" && return
    sleep 0.1
  done
  fail "$1: the pool is still $now bytes, wanted at most $2"
}

empty_pool=$(pool) empty_resident=$(resident)
pages "$work/data" 128
expect "128 MiB in" nbdcopy --connections=4 "$work/data" "$uri"
full_pool=$(pool) full_resident=$(resident)
grown=$((full_pool - empty_pool))
echo "pool $empty_pool -> $full_pool, resident $empty_resident -> $full_resident"
((grown > 20 << 20)) || fail "128 MiB of such pages cannot be kept in $grown bytes"
((full_resident - empty_resident > grown * 9 / 10)) ||
  fail "the kernel sees less than what the server's ledger says"

nbdsh -u "$uri" -c 'h.trim(64 << 20, 0)'
wait_for_pool "half trimmed" $((empty_pool + grown * 6 / 10))
half_resident=$(resident)
((full_resident - half_resident > grown * 3 / 10)) ||
  fail "resident memory fell only from $full_resident to $half_resident"
echo "ok: resident memory fell from $full_resident to $half_resident"

nbdsh -u "$uri" -c 'h.trim(256 << 20, 0)'
wait_for_pool "all trimmed" $((empty_pool + grown / 10))
last_resident=$(resident)
((full_resident - last_resident > grown * 8 / 10)) ||
  fail "resident memory fell only from $full_resident to $last_resident"
echo "ok: resident memory fell to $last_resident"

nbdcopy "$uri" "$work/empty"
expect "the disk reads as zeroes" cmp -n $((256 << 20)) "$work/empty" /dev/zero
expect "128 MiB in again" nbdcopy --connections=4 "$work/data" "$uri"
expect "and out, the same" bash -c "nbdcopy '$uri' - | cmp -n $((128 << 20)) - '$work/data'"

stop_server

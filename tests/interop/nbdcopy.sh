#!/usr/bin/env bash
# nbdcopy: whole disks in and out over four connections. The other end is nbdkit's sparse-random
# disk, which compares what is written to it with what it would have been read as.
source "$(dirname "${BASH_SOURCE[0]}")/interop.sh"
needs nbdcopy libnbd-bin
needs nbdinfo libnbd-bin
needs python3 python3

start_server --size 512M

pages "$work/data" 64
truncate -s 512M "$work/data"
expect "a file in, over four connections" nbdcopy --connections=4 --requests=32 "$work/data" "$uri"
nbdcopy --connections=4 "$uri" "$work/back"
expect "the file out again is the same" cmp "$work/data" "$work/back"
expect "the disk out through a pipe is the same" bash -c "nbdcopy '$uri' - | cmp - '$work/data'"
expect "one request at a time gives the same" \
  bash -c "nbdcopy --synchronous --request-size=65536 '$uri' - | cmp - '$work/data'"

needs nbdkit nbdkit
nbdkit --dump-plugin sparse-random >/dev/null 2>&1 || skip "this nbdkit has no sparse-random plugin"
seed=${TUCK_SEED:-$RANDOM}
echo "sparse-random with TUCK_SEED=$seed"
random=(nbdkit --exit-with-parent sparse-random 512M "seed=$seed" random-content=true percent=30)
expect "a random sparse disk in" nbdcopy --connections=4 -- [ "${random[@]}" ] "$uri"
expect "and out again, checked by nbdkit" nbdcopy --connections=4 -- "$uri" [ "${random[@]}" ]
data=$(nbdinfo --map --totals --json "$uri" | json 'sum(e["size"] for e in d if not e["type"] & 2)')
((data > 0 && data < 512 << 20)) || fail "nbdcopy has made no holes: $data bytes of data"
echo "ok: $data bytes of 512 MiB are data"

stop_server

#!/usr/bin/env bash
# fio: random reads and writes of mixed sizes over four connections at once, every block verified.
source "$(dirname "${BASH_SOURCE[0]}")/interop.sh"
needs fio fio
fio --enghelp 2>/dev/null | grep -qw nbd || skip "this fio has no nbd engine"
needs python3 python3

start_server --size 256M
seed=${TUCK_SEED:-$RANDOM}
echo "fio with TUCK_SEED=$seed"

# run NAME OPTION...: four jobs, each on a connection and a quarter of the disk of its own.
run() {
  local name=$1
  shift
  local status=0
  (cd "$work" && fio --name="$name" --ioengine=nbd --uri="$uri" --numjobs=4 --group_reporting \
    --size=64M --offset_increment=64M --randseed="$seed" --verify=crc32c --verify_fatal=1 \
    --output="$name.json" --output-format=json "$@" 2>"$name.log") || status=$?
  if ((status != 0)); then
    tail -n 40 "$work/$name.json" "$work/$name.log"
    fail "fio $name ended with status $status"
  fi
  expect_equal "errors of $name" 0 "$(json 'sum(j["error"] for j in d["jobs"])' <"$work/$name.json")"
  json '"   read %d, written %d requests" % (d["jobs"][0]["read"]["total_ios"], d["jobs"][0]["write"]["total_ios"])' \
    <"$work/$name.json"
}

run randrw-4k --rw=randrw --bs=4k --iodepth=16 --io_size=64M --refill_buffers --buffer_compress_percentage=60
run randrw-mixed --rw=randrw --bsrange=512-128k --bs_unaligned --iodepth=8 --io_size=64M \
  --refill_buffers --buffer_compress_percentage=60
run write-64k --rw=write --bs=64k --iodepth=8 --do_verify=1 --refill_buffers --buffer_compress_percentage=30

stop_server

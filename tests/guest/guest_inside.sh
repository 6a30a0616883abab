#!/usr/bin/env bash
# Boots a Linux guest that swaps onto an NBD server which runs in the guest itself, and judges what
# it reports. See README.md.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/guest.sh"

tuck='' server='' variant=one size='' times=1 fill_mib='' rounds=0 min_free_kib=8192
control='' more_options='' pswpout_min=15000 pswpin_min=10000
packed=()

usage() {
  cat <<END
guest_inside.sh --guest-pages PROGRAM (--tuck PROGRAM | --server COMMAND) [options]
  --guest-pages PROGRAM  the static program that runs in the guest
  --tuck PROGRAM         serve with this tuck
  --server COMMAND       serve with this command instead, in which {socket} and {size} are replaced;
                         --control PATH: it answers tuck stat there; --pack adds what it loads at run time. For example:
                         --server 'nbdkit -f -U {socket} memory {size} allocator=zstd' \\
                         --pack /usr/lib/x86_64-linux-gnu/nbdkit/plugins/nbdkit-memory-plugin.so
  --pack FILE            a file for the guest; keeps its path
  --variant NAME         one, four      one and four connections; memory is filled, changed, checked
                         random         memory is freed and filled again at random
                         incompressible more pages than there is room for, none of which compresses
                         limit          the same under a memory limit of the server
  --mib MIB              how much the program fills
  --rounds N             how often
  --size SIZE            the disk's size
  --with 'OPTIONS'       more options for tuck serve, for example '--codec zstd'
  --times N              so many guests, one after the other
  --cache DIR            where the unpacked kernel is kept
Environment: TUCK_GUEST_ACCEL (tcg, kvm), TUCK_SEED, TUCK_GUEST_TIMEOUT (seconds), TUCK_BUSYBOX
Exit status: 0 all was right, 1 something was wrong, 77 this machine lacks something
END
}

arguments=("$@")
while (($#)); do
  case $1 in
    --guest-pages) guest_pages=$2 ;;
    --tuck) tuck=$2 ;;
    --server) server=$2 ;;
    --pack) packed+=(--file "$2") ;;
    --variant) variant=$2 ;;
    --control) control=$2 ;;
    --min-free) min_free_kib=$2 ;;
    --mib) fill_mib=$2 ;;
    --rounds) rounds=$2 ;;
    --size) size=$2 ;;
    --with) more_options=$2 ;;
    --times) times=$2 ;;
    --cache) cache=$2 ;;
    --help) usage && exit 0 ;;
    *) usage >&2 && exit 2 ;;
  esac
  shift 2 || { usage >&2 && exit 2; }
done
if [[ -z $guest_pages || -z $tuck$server ]]; then
  usage >&2
  exit 2
fi

# Both emulated processors in one thread of QEMU's, which takes turns: a page goes from task to task
# four times, and what wakes and waits across two threads of a busy machine takes eight times as long.
[[ $accel != tcg ]] || accel=tcg,thread=single

# What the variants differ in. 220 MiB are more than the guest's kernel has to give: with all of it there,
# 206 MiB are on the disk.
mode=once connections=1 kept_mib=32 stop=detached
tuck_options=(--swap --connections 4 --poll 0)
case $variant in
  one) stop=full ;;
  four) connections=4 ;;
  random) mode=random connections=2 ;;
  incompressible) mode=exhaust connections=2 loglevel=3 fill_mib=${fill_mib:-400} pswpin_min=0 size=${size:-112M} kept_mib=12 tuck_options+=(--reserve 2M) ;;
  limit) mode=exhaust connections=2 loglevel=3 fill_mib=${fill_mib:-400} pswpin_min=0 size=${size:-64M} pswpout_min=10000 tuck_options+=(--memory-limit 24M) ;;
  *) usage >&2 && exit 2 ;;
esac
fill_mib=${fill_mib:-220} size=${size:-1G}

repeat() {
  local i passed=0
  for ((i = 1; i <= times; i++)); do
    if "${BASH_SOURCE[0]}" "${arguments[@]}" --times 1 >"$work/run.log" 2>&1; then
      passed=$((passed + 1))
      echo "$variant $i: $(tail -n 1 "$work/run.log")"
    else
      cat "$work/run.log"
      echo "$variant $i: not passed"
    fi
  done
  echo "$variant: $passed of $times passed"
  ((passed == times))
}

prepare() {
  command -v python3 >/dev/null || skip "no python3 here to read the server's statistics with"
  local command=$server
  if [[ -z $server ]]; then
    control=/run/tuck.control
    command="$tuck serve --unix {socket} --control $control --size {size} ${tuck_options[*]} $more_options"
  fi
  command=${command//\{socket\}//run/disk.sock}
  command=${command//\{size\}/$size}
  local program=${command%% *}
  program=$(command -v "$program") || skip "no ${command%% *} here"
  command="$(basename "$program") ${command#* }"
  local client
  client=$(PATH=$PATH:/usr/sbin:/sbin command -v nbd-client) || skip "no nbd-client (package nbd-client)"
  echo "server: $command"
  cat >"$work/settings" <<END
tuck_server='$command' tuck_control='$control' tuck_connections=$connections
tuck_mode=$mode tuck_mib=$fill_mib tuck_kept_mib=$kept_mib tuck_rounds=$rounds tuck_seed=$seed tuck_stop=$stop
tuck_min_free_kib=$min_free_kib
END
  prepare_guest inside_scenario.sh --module nbd --program "$client" --program "$program" "${packed[@]}"
}

# figure KEY OF: a figure of the server's statistics at a moment, by its path (a.b.c).
figure() {
  result "$2_stat" | python3 -c '
import json, sys
value = json.load(sys.stdin)
for key in sys.argv[1].split("."):
    value = value[key]
print(value)' "$1"
}

# What holds whatever the server and the variant.
judge_guest() {
  local wrong in out
  wrong=$(result wrong_words) in=$(result pswpin) out=$(result pswpout)
  [[ -n $wrong && -n $in && -n $out ]] || fail "the guest did not come to its end: $(result end)"
  ((wrong == 0)) || fail "$wrong words were wrong"
  ((out > pswpout_min)) || fail "only $out pages were swapped out, not over $pswpout_min"
  ((in > pswpin_min)) || fail "only $in pages were swapped in, not over $pswpin_min"
  [[ $(result swapoff) == ok ]] || fail "swapoff failed"
  [[ $(result server_status) == 0 ]] || fail "the server ended with status $(result server_status)"
  [[ $(result end) == ok ]] || fail "the guest ended with: $(result end)"
  if complaints; then fail "the guest's kernel complained"; fi
}

judge_room() {
  ((fill_mib * 1024 > $(result MemAvailable_served))) ||
    fail "the program was to fill more than the $(result MemAvailable_served) KiB that the guest has left"
  if disk_complaints; then fail "the guest's kernel complained of its disk"; fi
}

# Memory did run out: the program was killed, or writes were refused, and nothing else happened.
judge_exhaustion() {
  local child refused
  child=$(result child)
  [[ $(result child_wrong_words) == 0 ]] || fail "$(result child_wrong_words) words of the program were wrong"
  [[ $child == killed || $child == survived ]] || fail "the program has $child"
  refused=$(grep -c 'Write-error' "$work/console.log" || true)
  echo "  the program: $child after $(result child_written_pages) pages; write errors logged: $refused"
  [[ $child == killed ]] || ((refused > 0)) || fail "memory did not run out"
  # A page that is on the disk is never lost.
  if tr -d '\r' <"$work/console.log" | grep -E 'Read-error'; then fail "a page could not be read back"; fi
}

# The most that the pool has had, reached after the start, beside what else the process has.
pool_peak() {
  echo $(($(figure process.resident_peak_bytes end) - $(figure process.resident_bytes start) +
    $(figure memory.resident_bytes start)))
}

judge_tuck() {
  local moment protections
  for moment in start full end; do
    [[ $(result ${moment}_VmSwap) == 0 ]] || fail "at $moment the server has $(result ${moment}_VmSwap) KiB in swap"
    # Pages shared with others (`tuck stat` has the same libraries) count by halves.
    (($(result ${moment}_Locked) >= $(result ${moment}_Rss) * 9 / 10)) ||
      fail "at $moment only $(result ${moment}_Locked) of the server's $(result ${moment}_Rss) KiB are locked"
    [[ $(result ${moment}_threads_ordinary) == 0 && $(result ${moment}_threads_realtime) -ge 3 ]] ||
      fail "at $moment $(result ${moment}_threads_ordinary) serving threads are no real-time tasks"
    protections=$(figure protections.at_start $moment)
    [[ $protections == *"'priority': {'holds': True"* && $protections != *"'holds': False"* ]] ||
      fail "at $moment a protection is missing: $protections"
    [[ $(result ${moment}_threads_unflagged) == 0 ]] ||
      fail "at $moment $(result ${moment}_threads_unflagged) threads of the server are not flagged as I/O flushers"
    [[ $(result ${moment}_oom_score_adj) == -1000 ]] || fail "at $moment the server may be killed for memory"
    [[ $(result ${moment}_major_faults) == "$(result start_major_faults)" ]] ||
      fail "the server took major faults: $(result start_major_faults) at start, $(result ${moment}_major_faults) at $moment"
  done
  [[ $(figure operations.read.errors end) == 0 ]] || fail "reads were answered with errors"
  case $variant in
    incompressible) (($(figure engine.reserve_misses end) > 0)) || fail "the reserve was never empty" ;;
    limit)
      # A block of 64 frames that does not fit any more is not taken.
      (($(pool_peak) > $(figure memory.limit_bytes end) - 256 * 1024 && $(figure engine.stores_no_space end) > 0)) ||
        fail "the pool had $(pool_peak) bytes at most: the limit was not reached"
      ;;
  esac
  [[ $mode == exhaust ]] || judge_compression "$(figure memory.compression_ratio full)"
  if [[ $stop == full ]]; then
    grep -q 'SIGTERM: not stopping yet' "$work/server.log" || fail "the log does not say why SIGTERM did not end the server"
  fi
  echo "  server: VmSwap 0 KiB, major faults $(result start_major_faults) to $(result end_major_faults)," \
    "$(result end_threads) threads, $(result end_VmRSS) KiB resident; ratio $(figure memory.compression_ratio full);" \
    "reserve empty $(figure engine.reserve_misses end) times, $(figure engine.stores_no_space end) stores refused"
}

judge_compression() {
  awk -v ratio="$1" 'BEGIN { exit !(ratio >= 2 && ratio <= 3) }' || fail "pages compress by $1, not 2 to 3"
}

start=$SECONDS
if ((times > 1)); then
  repeat
  exit
fi
prepare
echo "guest: variant $variant, $memory_mib MiB, $mode with $fill_mib MiB, accelerator $accel, TUCK_SEED=$seed"
run_guest -serial "file:$work/server.log"
judge_guest
if [[ $mode == exhaust ]]; then judge_exhaustion; else judge_room; fi
[[ -z $tuck ]] || judge_tuck
echo "PASSED in $((SECONDS - start)) s: wrong_words=$(result wrong_words) pswpin=$(result pswpin)" \
  "pswpout=$(result pswpout)"

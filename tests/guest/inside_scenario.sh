# shellcheck shell=dash disable=SC2154
# Sourced by `init` in the guest of guest_inside.sh: the server runs in the guest that swaps onto it.
# Settings: tuck_server (its command line), tuck_control (its control socket; empty: it has none),
# tuck_connections, tuck_mode, tuck_mib, tuck_rounds, tuck_seed, and tuck_stop: when SIGTERM comes,
# `full` (while the swap area is in use) or `detached`.
#
# Also sourced by /at_full, which guest_pages runs when the swap area is full; then $server is set.

socket=/run/disk.sock

# field NAME FILE: of files whose lines are "NAME: VALUE".
field() { sed -n "s/^$1:[[:space:]]*//p" "$2"; }

# What the server has in memory and in its tasks, under names that begin with the moment.
show_server() {
  local moment=$1 threads=0 unflagged=0 realtime=0 ordinary=0 task line name
  # First, because it is answered when the server serves, not before.
  [ -z "$tuck_control" ] ||
    echo "${moment}_stat=$(tuck stat --json --control "$tuck_control" | tr -d ' \n')"
  line=$(cat "/proc/$server/stat") || end "the server has died before the moment '$moment'"
  # The second figure of a stat file, a name in brackets, may hold blanks.
  # shellcheck disable=SC2086  # Words are wanted.
  set -- ${line##*) }
  echo "${moment}_major_faults=${10} ${moment}_minor_faults=$8"
  for task in /proc/"$server"/task/*; do
    line=$(cat "$task/stat")
    # shellcheck disable=SC2086
    set -- ${line##*) }
    threads=$((threads + 1))
    # PF_MEMALLOC_NOIO and PF_LOCAL_THROTTLE, which PR_SET_IO_FLUSHER sets.
    [ $(($7 & 0x180000)) -eq $((0x180000)) ] || unflagged=$((unflagged + 1))
    # The threads that answer, and the one that brings memory, are to be SCHED_RR (2).
    case $(cat "$task/comm") in
      tuck-nbd-* | tuck-background)
        if [ "${39}" -eq 2 ]; then realtime=$((realtime + 1)); else ordinary=$((ordinary + 1)); fi ;;
    esac
  done
  echo "${moment}_threads=$threads ${moment}_threads_unflagged=$unflagged"
  echo "${moment}_threads_realtime=$realtime ${moment}_threads_ordinary=$ordinary"
  for name in VmSwap VmRSS; do
    echo "${moment}_$name=$(field $name "/proc/$server/status" | sed 's/ kB//')"
  done
  grep -E '^(Rss|Locked):' "/proc/$server/smaps_rollup" |
    sed "s/: */=/; s/ kB//; s/^/${moment}_/" | tr '\n' ' '
  echo
  echo "${moment}_oom_score_adj=$(cat "/proc/$server/oom_score_adj")"
}

# The names of the figures end with the moment.
show_memory() {
  grep -E '^(MemTotal|MemFree|MemAvailable|Mlocked|SwapTotal|SwapFree):' /proc/meminfo |
    sed "s/: */_$1=/; s/ kB//" | tr '\n' ' '
  echo
}

at_full() {
  show_memory full
  show_server full
  [ "$tuck_stop" != full ] || kill -TERM "$server"
}

# The shell may have seen its end already, and the kernel forgotten it.
server_ended() { ! grep -q '^State:[[:space:]]*[^Z]' "/proc/$server/status" 2>/dev/null; }
swap_used() { grep -q nbd0 /proc/swaps; }

attach() {
  # shellcheck disable=SC2086
  $tuck_server </dev/null >/dev/ttyS2 2>&1 &
  server=$!
  wait_for "server" [ -S "$socket" ]
  show_server start
  nbd-client -unix "$socket" /dev/nbd0 -block-size 4096 -connections "$tuck_connections" -swap ||
    end "nbd-client failed"
  # Writeback throttling lets a disk with slow reads write one request at a time; here writes are
  # what makes memory free.
  echo 0 >/sys/block/nbd0/queue/wbt_lat_usec
  mkswap /dev/nbd0 >/dev/null || end "mkswap failed"
  swapon -dpages /dev/nbd0 || end "swapon failed"
}

detach() {
  nbd-client -d /dev/nbd0 || end "nbd-client -d failed"
  [ "$tuck_stop" = full ] || kill -TERM "$server"
  wait_for "end of the server" server_ended
  wait "$server"
  echo "server_status=$?"
}

swap_on_server() {
  # A task that waits for this long has met a deadlock.
  echo 60 >/proc/sys/kernel/hung_task_timeout_secs
  echo 1 >/proc/sys/kernel/hung_task_panic
  # Read-ahead of neighbours in the swap area pays only on a disk that seeks.
  echo 0 >/proc/sys/vm/page-cluster
  # Below this mark only the server's real-time threads and those who write pages out get memory: an
  # eighth of it is for the sockets' buffers, 0.2 MiB a connection, and one for the reserve. The boost would
  # put the mark up for a while, over memory that is not there.
  echo "$tuck_min_free_kib" >/proc/sys/vm/min_free_kbytes
  echo 0 >/proc/sys/vm/watermark_boost_factor
  show_memory boot
  attach
  show_memory served
  cat >/at_full <<END
#!/bin/busybox sh
server=$server
. /settings
. /scenario
END
  chmod 755 /at_full
  guest_pages "$tuck_mode" /dev/nbd0 "$tuck_mib" "$tuck_kept_mib" "$tuck_rounds" "$tuck_seed"
  local status=$?
  show_memory end
  show_server end
  [ "$status" -eq 0 ] || end "guest_pages failed with status $status"
  swap_used && end "the swap area is still there"
  detach
  end ok
}

if [ "$0" = /at_full ]; then
  at_full
else
  swap_on_server
fi

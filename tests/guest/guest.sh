# shellcheck shell=bash
# What the guest tests share; sourced. Builds a guest's root, runs QEMU, reads what the guest reports.
#
# The test sets, before it calls prepare_guest: cache, guest_pages; and defines usage().

guest_here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck disable=SC2034  # The tests use them.
{
  cache=$guest_here/../../build/guest-cache
  guest_pages=''
  accel=${TUCK_GUEST_ACCEL:-tcg}
  time_max=${TUCK_GUEST_TIMEOUT:-500}
  seed=${TUCK_SEED:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}
  memory_mib=256
  loglevel=7
}

work=$(mktemp -d "${TMPDIR:-/tmp}/tuck-guest.XXXXXX")
# A socket's path has room for 107 bytes.
((${#work} < 90)) || { rmdir "$work" && work=$(mktemp -d /tmp/tuck-guest.XXXXXX); }
qemu_pid=''

# Only what a failure has left running.
end_guest() {
  [[ -z $qemu_pid ]] || kill -KILL "$qemu_pid" 2>/dev/null || true
  # The logs in full, which are longer than what fail() shows.
  [[ -z ${TUCK_GUEST_LOGS:-} ]] || { mkdir -p "$TUCK_GUEST_LOGS" && cp "$work"/*.log "$TUCK_GUEST_LOGS"; }
  rm -rf "$work"
}
trap end_guest EXIT
trap 'exit 1' INT TERM

skip() {
  echo "SKIPPED: $1"
  exit 77
}

fail() {
  echo "FAILED: $1"
  local log
  for log in console server qemu; do
    [[ -s $work/$log.log ]] || continue
    echo "--- $log.log, its end:"
    tail -n 150 "$work/$log.log" | tr -d '\r'
  done
  exit 1
}

# What the guest reported under this key.
result() {
  tr -d '\r' <"$work/result.log" | tr ' ' '\n' | sed -n "s/^$1=//p" | tail -n 1
}

# Waits ten seconds for a process to end; returns its status.
wait_or_kill() {
  local i
  for ((i = 0; i < 100; i++)); do
    kill -0 "$1" 2>/dev/null || break
    sleep 0.1
  done
  kill -KILL "$1" 2>/dev/null && echo "process $1 had to be killed"
  local status=0
  wait "$1" || status=$?
  return "$status"
}

find_busybox() {
  local found=${TUCK_BUSYBOX:-$(command -v busybox)}
  # One that needs a loader would not run in the guest; ldd fails on one that needs none.
  [[ -x $found ]] && ! ldd "$found" >/dev/null 2>&1 && echo "$found"
}

# prepare_guest SCENARIO ARGUMENT...: looks for what a guest needs and packs its root. The settings
# are in $work/settings; the arguments are make_initramfs.sh's.
prepare_guest() {
  local scenario=$1 busybox status=0
  shift
  [[ $(uname -m) == x86_64 ]] || skip "the guest's program is built for $(uname -m), the guest is x86_64"
  command -v qemu-system-x86_64 >/dev/null || skip "no qemu-system-x86_64 (package qemu-system-x86)"
  [[ $accel != kvm || -w /dev/kvm ]] || skip "TUCK_GUEST_ACCEL=kvm, and /dev/kvm cannot be used here"
  busybox=$(find_busybox) || skip "no static busybox (package busybox-static)"
  kernel_dir=$("$guest_here/kernel.sh" "$cache" 2>"$work/kernel.log") || status=$?
  sed 's/^/  /' "$work/kernel.log"
  ((status != 77)) || skip "no kernel for the guest"
  ((status == 0)) || fail "kernel.sh ended with status $status"
  "$guest_here/make_initramfs.sh" --kernel "$kernel_dir" --busybox "$busybox" \
    --scenario "$guest_here/$scenario" --settings "$work/settings" --program "$guest_pages" \
    "$@" --out "$work/initramfs" || fail "make_initramfs.sh failed"
}

# run_guest ARGUMENT...: boots it and waits for its end; the arguments are QEMU's.
run_guest() {
  # A panic reboots at once, and a reboot ends QEMU. Without zswap, which would take pages away from
  # the disk.
  local cmdline="console=ttyS0 loglevel=$loglevel panic=-1 sysrq_always_enabled zswap.enabled=0 rdinit=/init"
  # shellcheck disable=SC2054  # The commas are QEMU's.
  local -a qemu=(qemu-system-x86_64 -accel "$accel" -smp 2 -m "${memory_mib}M" -nodefaults -no-user-config
    -display none -no-reboot -kernel "$kernel_dir/vmlinuz" -initrd "$work/initramfs" -append "$cmdline"
    -serial "file:$work/console.log" -serial "file:$work/result.log" -monitor "pipe:$work/monitor" "$@")
  mkfifo "$work/monitor.in" "$work/monitor.out"
  # Open for reading and writing, so that neither side waits for the other.
  exec 8<>"$work/monitor.in" 7<>"$work/monitor.out"
  "${qemu[@]}" >"$work/qemu.log" 2>&1 7>&- 8>&- &
  qemu_pid=$!
  local status=0 until=$((SECONDS + time_max)) stuck=''
  while kill -0 "$qemu_pid" 2>/dev/null; do
    ((SECONDS < until)) || { stuck=1 && look_into_guest && break; }
    sleep 0.2
  done
  wait "$qemu_pid" || status=$?
  qemu_pid=
  touch "$work/result.log"
  tr -d '\r' <"$work/result.log" | sed 's/^/  /'
  [[ -z $stuck ]] || fail "the guest was not done after $time_max s"
  ((status == 0)) || fail "QEMU ended with status $status"
}

# A guest that hangs tells on its console which tasks there are, which of them wait and where its memory is
# (SysRq t, w, m),
# asked with keys, as nothing may run in it any more. Ends it.
look_into_guest() {
  local key
  for key in t w m; do
    echo "sendkey alt-sysrq-$key" >&8
    sleep 5
  done
  kill -TERM "$qemu_pid" 2>/dev/null
  sleep 2
  kill -KILL "$qemu_pid" 2>/dev/null
  return 0
}

# What a guest's kernel says when something is wrong, whatever the test.
complaints() {
  tr -d '\r' <"$work/console.log" | grep -E 'BUG:|WARNING:|Oops|blocked for more than|Kernel panic'
}

# What it says when the disk failed.
disk_complaints() {
  tr -d '\r' <"$work/console.log" | grep -E "I/O error|Read-error|Write-error|Other side returned error"
}

#!/usr/bin/env bash
# Boots a Linux guest that swaps onto an NBD disk, and judges what it reports. See README.md.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tuck=
server=
export_name=
size=1G
cache=$here/../../build/guest-cache
guest_pages=
accel=${TUCK_GUEST_ACCEL:-tcg}
seed=${TUCK_SEED:-$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}
time_max=${TUCK_GUEST_TIMEOUT:-500}
# The guest has 256 MiB and is made to hold 300, with its kernel.
memory_mib=256 fill_mib=300 rounds=2
pswpout_min=50000

usage() {
  cat <<END
guest_swap.sh --guest-pages PROGRAM (--tuck PROGRAM | --server COMMAND) [options]
  --guest-pages PROGRAM  the static program that runs in the guest
  --tuck PROGRAM         serve with this tuck
  --server COMMAND       serve with this command instead, in which {socket} and {size} are replaced,
                         for example: nbdkit -f -U {socket} memory {size}
  --export NAME          the export to use (default: the server's default export)
  --size SIZE            the disk's size (default $size)
  --cache DIR            where the unpacked kernel is kept
Environment: TUCK_GUEST_ACCEL (tcg, kvm), TUCK_SEED, TUCK_GUEST_TIMEOUT (seconds), TUCK_BUSYBOX
Exit status: 0 all was right, 1 something was wrong, 77 this machine lacks something
END
}

while (($#)); do
  case $1 in
    --guest-pages) guest_pages=$2 ;;
    --tuck) tuck=$2 ;;
    --server) server=$2 ;;
    --export) export_name=$2 ;;
    --size) size=$2 ;;
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

work=$(mktemp -d "${TMPDIR:-/tmp}/tuck-guest.XXXXXX")
# A socket's path has room for 107 bytes.
((${#work} < 90)) || { rmdir "$work" && work=$(mktemp -d /tmp/tuck-guest.XXXXXX); }
socket=$work/disk.sock control=$work/control.sock
server_pid='' qemu_pid=''

end_all() {
  # Only what a failure has left running. SIGTERM for `timeout`, which passes it on to QEMU.
  [[ -z $qemu_pid ]] || kill -TERM "$qemu_pid" 2>/dev/null || true
  [[ -z $server_pid ]] || kill -KILL "$server_pid" 2>/dev/null || true
  rm -rf "$work"
}
trap end_all EXIT
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
    tail -n 80 "$work/$log.log" | tr -d '\r'
  done
  exit 1
}

# What the guest reported under this key.
result() {
  tr -d '\r' <"$work/result.log" | tr ' ' '\n' | sed -n "s/^$1=//p" | tail -n 1
}

find_busybox() {
  local found=${TUCK_BUSYBOX:-$(command -v busybox)}
  # One that needs a loader would not run in the guest; ldd fails on one that needs none.
  [[ -x $found ]] && ! ldd "$found" >/dev/null 2>&1 && echo "$found"
}

prepare() {
  [[ $(uname -m) == x86_64 ]] || skip "the guest's program is built for $(uname -m), the guest is x86_64"
  command -v qemu-system-x86_64 >/dev/null || skip "no qemu-system-x86_64 (package qemu-system-x86)"
  [[ $accel != kvm || -w /dev/kvm ]] || skip "TUCK_GUEST_ACCEL=kvm, and /dev/kvm cannot be used here"
  busybox=$(find_busybox) || skip "no static busybox (package busybox-static)"
  local status=0
  kernel_dir=$("$here/kernel.sh" "$cache" 2>"$work/kernel.log") || status=$?
  sed 's/^/  /' "$work/kernel.log"
  ((status != 77)) || skip "no kernel for the guest"
  ((status == 0)) || fail "kernel.sh ended with status $status"
  "$here/make_initramfs.sh" "$kernel_dir" "$busybox" "$guest_pages" "$work/initramfs" ||
    fail "make_initramfs.sh failed"
}

start_server() {
  local -a command
  if [[ -n $server ]]; then
    read -ra command <<<"$server"
    command=("${command[@]//\{socket\}/$socket}")
    command=("${command[@]//\{size\}/$size}")
  else
    command=("$tuck" serve --unix "$socket" --control "$control" --size "$size")
  fi
  echo "server: ${command[*]}"
  "${command[@]}" >"$work/server.log" 2>&1 &
  server_pid=$!
  local i
  for ((i = 0; i < 100; i++)); do
    [[ -S $socket ]] && return
    kill -0 "$server_pid" 2>/dev/null || break
    sleep 0.1
  done
  wait_or_kill "$server_pid" || true
  server_pid=
  fail "the server did not come up"
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

run_guest() {
  local disk="nbd+unix:///$export_name?socket=$socket"
  # A panic reboots at once, and a reboot ends QEMU. Without zswap, which would take pages away from
  # the disk.
  local cmdline="console=ttyS0 loglevel=6 panic=-1 zswap.enabled=0 rdinit=/init"
  cmdline+=" tuck_mib=$fill_mib tuck_rounds=$rounds tuck_seed=$seed"
  # shellcheck disable=SC2054  # The commas are QEMU's.
  local -a qemu=(qemu-system-x86_64 -accel "$accel" -smp 2 -m "${memory_mib}M" -nodefaults -no-user-config
    -display none -no-reboot -kernel "$kernel_dir/vmlinuz" -initrd "$work/initramfs" -append "$cmdline"
    -serial "file:$work/console.log" -serial "file:$work/result.log"
    # The server's socket may be bound a moment before it is listened on.
    -drive "file=$disk,file.open-timeout=10,format=raw,if=none,id=swap,discard=unmap"
    -device virtio-blk-pci,drive=swap)
  echo "guest: $memory_mib MiB, filled with $fill_mib MiB, $rounds rounds, accelerator $accel, TUCK_SEED=$seed"
  timeout --kill-after=10 "$time_max" "${qemu[@]}" >"$work/qemu.log" 2>&1 &
  qemu_pid=$!
  local status=0
  wait "$qemu_pid" || status=$?
  qemu_pid=
  touch "$work/result.log"
  tr -d '\r' <"$work/result.log" | sed 's/^/  /'
  ((status != 124 && status != 137)) || fail "the guest was not done after $time_max s"
  ((status == 0)) || fail "QEMU ended with status $status"
}

judge() {
  local wrong in out swapoff_in
  wrong=$(result wrong_words) in=$(result pswpin) out=$(result pswpout)
  swapoff_in=$(result swapoff_pages_in)
  [[ -n $wrong && -n $in && -n $out ]] || fail "the guest did not come to its end: $(result end)"
  ((wrong == 0)) || fail "$wrong words were wrong"
  ((out > pswpout_min)) || fail "only $out pages were swapped out, not over $pswpout_min"
  ((in > 0)) || fail "no page was swapped in"
  [[ $(result swapoff) == ok ]] || fail "swapoff failed"
  ((swapoff_in > 0)) || fail "swapoff found nothing on the disk"
  (($(result discards) > 0)) || fail "the disk got no discard for slots that became free"
  [[ $(result end) == ok ]] || fail "the guest ended with: $(result end)"
  if tr -d '\r' <"$work/console.log" | grep -E 'I/O error|Read-error|Write-error|BUG:|WARNING:|Oops'; then
    fail "the guest's kernel complained"
  fi
}

stop_server() {
  if [[ -S $control ]]; then
    "$tuck" stat --control "$control" >"$work/stat" || fail "tuck stat failed"
    # All but the longest table.
    sed '/^Size classes/,/^$/d; s/^/  /' "$work/stat"
  fi
  kill -0 "$server_pid" 2>/dev/null || fail "the server has died"
  local peak
  peak=$(sed -n 's/^VmHWM:[[:space:]]*//p' "/proc/$server_pid/status") || true
  echo "server: peak resident memory $peak"
  kill -TERM "$server_pid"
  local status=0
  wait_or_kill "$server_pid" || status=$?
  server_pid=
  ((status == 0)) || fail "the server ended with status $status"
}

start=$SECONDS
prepare
start_server
run_guest
judge
stop_server
echo "PASSED in $((SECONDS - start)) s: wrong_words=$(result wrong_words) pswpin=$(result pswpin)" \
  "pswpout=$(result pswpout)"

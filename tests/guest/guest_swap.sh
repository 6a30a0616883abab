#!/usr/bin/env bash
# Boots a Linux guest that swaps onto an NBD disk, and judges what it reports. See README.md.
set -euo pipefail

source "$(dirname "${BASH_SOURCE[0]}")/guest.sh"

tuck=''
server=''
export_name=''
size=1G
# The guest has 256 MiB and is made to hold 300, with its kernel.
fill_mib=300 rounds=2
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

socket=$work/disk.sock control=$work/control.sock
server_pid=''
end_all() {
  [[ -z $server_pid ]] || kill -KILL "$server_pid" 2>/dev/null || true
  end_guest
}
trap end_all EXIT

prepare() {
  cat >"$work/settings" <<END
tuck_mib=$fill_mib tuck_kept_mib=80 tuck_rounds=$rounds tuck_seed=$seed
END
  local -a modules=()
  local module
  for module in virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci virtio_blk; do
    modules+=(--module "$module")
  done
  prepare_guest swap_scenario.sh "${modules[@]}"
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

swap_on_server() {
  local disk="nbd+unix:///$export_name?socket=$socket"
  echo "guest: $memory_mib MiB, filled with $fill_mib MiB, $rounds rounds, accelerator $accel, TUCK_SEED=$seed"
  # The server's socket may be bound a moment before it is listened on.
  run_guest -drive "file=$disk,file.open-timeout=10,format=raw,if=none,id=swap,discard=unmap" \
    -device virtio-blk-pci,drive=swap
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
  if complaints || disk_complaints; then fail "the guest's kernel complained"; fi
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
swap_on_server
judge
stop_server
echo "PASSED in $((SECONDS - start)) s: wrong_words=$(result wrong_words) pswpin=$(result pswpin)" \
  "pswpout=$(result pswpout)"

#!/usr/bin/env bash
# qemu-io: patterns, zeroes and discards at aligned and unaligned places, verified by qemu-io.
source "$(dirname "${BASH_SOURCE[0]}")/interop.sh"
needs qemu-io qemu-utils

start_server --size 64M

# io WHAT COMMAND...: qemu-io says so on its output when a pattern does not fit, and some of its
# errors leave the exit status 0.
io() {
  local what=$1 arguments=() command
  shift
  for command in "$@"; do arguments+=(-c "$command"); done
  qemu-io -f raw -d unmap "${arguments[@]}" "$uri" >"$work/io.log" 2>&1 || {
    cat "$work/io.log"
    fail "$what"
  }
  if grep -iE 'fail|error|invalid|unsupported|not ' "$work/io.log"; then fail "$what"; fi
  echo "ok: $what"
}

io "patterns" \
  "write -P 0x11 0 1M" "write -P 0x22 1M 64k" "write -P 0x33 63M 1M" "flush" \
  "read -P 0x11 0 1M" "read -P 0x22 1M 64k" "read -P 0x33 63M 1M" "read -P 0 2M 61M"
io "unaligned patterns over aligned ones" \
  "write -P 0x44 4000 200" "write -P 0x55 12289 4095" "write -P 0x66 1048575 2" \
  "read -P 0x11 0 4000" "read -P 0x44 4000 200" "read -P 0x11 4200 8089" "read -P 0x55 12289 4095" \
  "read -P 0x11 16384 1032191" "read -P 0x66 1048575 2" "read -P 0x22 1048577 65535"
io "zeroes, whole pages and parts" \
  "write -z 8192 8192" "write -z -u 20000 10000" \
  "read -P 0x11 4200 3992" "read -P 0 8192 8192" "read -P 0x11 16384 3616" "read -P 0 20000 10000" \
  "read -P 0x11 30000 4096"
io "discard, and written again" \
  "discard 64k 512k" "read -P 0 64k 512k" "read -P 0x11 576k 128k" \
  "write -P 0x77 100k 4k" "read -P 0x77 100k 4k" "read -P 0 104k 32k"
io "a forced write" "write -f -P 0x88 2M 64k" "read -P 0x88 2M 64k"
io "many at once" \
  "aio_write -P 0x91 4M 64k" "aio_write -P 0x92 5M 64k" "aio_write -P 0x93 6M 64k" "aio_flush" \
  "aio_read -P 0x91 4M 64k" "aio_read -P 0x92 5M 64k" "aio_read -P 0x93 6M 64k" "aio_flush"

if qemu-io -f raw -c "read 64M 4k" "$uri" >"$work/io.log" 2>&1 && ! grep -qi 'fail\|error' "$work/io.log"; then
  fail "a read behind the end succeeded"
fi
io "what was written before is still there" "read -P 0x33 63M 1M" "read -P 0x22 1048577 65535"

stop_server

#!/usr/bin/env bash
# Whether the calls that tests/faults can make fail are all that the libraries make.
#
#   wrapped_names.sh NM NAME... -- LIBRARY...
set -euo pipefail

# What a library may call besides, and why it has no fault of its own:
readonly besides=(
  # compressors and the compiler's own
  'LZ4_.*' 'ZSTD_.*' '__cxa_.*' '_Unwind_.*' '__gxx_personality_v0' '_GLOBAL_OFFSET_TABLE_'
  '__dso_handle' '__stack_chk_fail' '__popcountdi2' '__u?divti3' '__libc_single_threaded'
  '__once_proxy' '__errno_location'
  # nothing but memory, or text that is always there
  'mem(cpy|move|set|chr|cmp)' 'str(len|chr|cmp|error|errordesc_np)' 'snprintf' 'isalnum' 'inet_(ntop|pton)'
  # the end of the process, and of a ring (which tells nobody how it went)
  'abort' 'io_uring_queue_exit'
  # fails only where it is called wrongly: locks, waits, sleeping, masks of signals, constants
  'pthread_(mutex|cond|once).*' 'pthread_sigmask' 'sig(addset|emptyset|ismember|pending|timedwait)'
  'sched_(yield|getcpu)' 'nanosleep' 'sysconf' 'geteuid'
  # what an open directory says
  'readdir' 'closedir'
  # std::atomic's wait
  'syscall'
  # other C++, but for the start of a thread
  '_Z.*'
)

nm=$1
shift
wrapped=()
while [[ $1 != -- ]]; do
  wrapped+=("$1")
  shift
done
shift

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$nm" "$@" | awk 'NF >= 2 && $(NF - 1) ~ /^[TDBRVWu]$/ { print $NF }' | sort -u >"$work/defined"
"$nm" -u "$@" | awk '$1 == "U" { print $2 }' | sort -u | comm -23 - "$work/defined" >"$work/called"
printf '%s\n' "${wrapped[@]}" | sort -u >"$work/wrapped"
printf '%s\n' "${besides[@]}" >"$work/besides"

failed=0
while read -r name; do
  echo "$name is called and is not made to fail: wrap it, or say in this script why it needs no fault"
  failed=1
done < <(comm -23 "$work/called" "$work/wrapped" | grep -vxE -f "$work/besides" || true)
while read -r name; do
  echo "$name is wrapped and nobody calls it"
  failed=1
done < <(comm -13 "$work/called" "$work/wrapped")
((failed)) || echo "${#wrapped[@]} calls, all of them wrapped"
exit "$failed"

#!/usr/bin/env bash
# no_sync_points.sh PROGRAM SOURCES: that a program built without TUCK_SYNC_POINTS holds nothing of
# them. The names come from the sources, so that a list cannot grow old.
set -euo pipefail
program=$1 sources=$2

mapfile -t names < <(grep -rhoE 'TUCK_SYNC_POINT\("[^"]+"' "$sources"/{base,allocator,engine,frontends} \
  --include='*.cpp' --include='mutex.h' | sed 's/.*"\(.*\)"/\1/' | sort -u)
((${#names[@]} >= 15)) || { echo "only ${#names[@]} sync points found in the sources" >&2 && exit 1; }

for name in "${names[@]}" reach_sync_point; do
  if grep -qaF "$name" "$program"; then
    echo "$program contains $name" >&2
    exit 1
  fi
done
echo "none of ${#names[@]} sync points is in $program"

#!/usr/bin/env bash
# nbdsh: single requests, legal and illegal, in every way a client may negotiate.
source "$(dirname "${BASH_SOURCE[0]}")/interop.sh"
needs nbdsh python3-libnbd
nbdsh -c 'pass' 2>/dev/null || skip "nbdsh finds no libnbd module for its Python"

here=$(dirname "${BASH_SOURCE[0]}")
start_server --export first:16M --export odd:1000003
for part in requests negotiation; do
  expect "nbdsh: $part" env TUCK_SOCKET="$socket" nbdsh -n -c - <"$here/nbdsh_$part.py"
done
expect "the server still answers" "$TUCK" stat --control "$control"
stop_server

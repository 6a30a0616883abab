#!/usr/bin/env bash
# tuck stat: what it says about known pages, for programs (--json) and for people.
source "$(dirname "${BASH_SOURCE[0]}")/interop.sh"
needs nbdsh python3-libnbd
needs python3 python3

status=0
"$TUCK" stat --control "$work/nobody" >"$work/out" 2>"$work/err" || status=$?
expect_equal "exit status where no server is" 1 "$status"
expect_equal "lines of the message" 1 "$(wc -l <"$work/err")"

start_server --export first:16M --export second:16M

# 300 compressible, 100 incompressible and 50 repeating pages; 20 of the first are overwritten and
# 10 trimmed.
nbdsh -c "
import random
h = nbd.NBD()
h.set_export_name('first')
h.connect_unix('$socket')
rng = random.Random(${TUCK_SEED:-1})
for page in range(300):
    h.pwrite(rng.randbytes(1000) + bytes([page & 255]) * 3096, page * 4096)
for page in range(300, 400):
    h.pwrite(rng.randbytes(4096), page * 4096)
for page in range(400, 450):
    h.pwrite(bytes([page & 255]) * 4096, page * 4096)
for page in range(20):
    h.pwrite(rng.randbytes(1200) + bytes(2896), page * 4096)
h.trim(10 * 4096, 0)
for page in range(40):
    h.pread(4096, page * 4096)
try:
    h.set_strict_mode(0)
    h.pread(4096, 16 << 20)
except nbd.Error:
    pass
h.shutdown()
"
# Objects that were overwritten or trimmed count in their classes until the background has freed them.
for _ in {1..200}; do
  "$TUCK" stat --control "$control" --json >"$work/stat.json"
  [[ $(json 'd["engine"]["retired_objects"]' <"$work/stat.json") != 0 ]] || break
  sleep 0.05
done

# check WHAT EXPRESSION: an expression over the document d that must be true.
check() {
  python3 -c "import json
d = json.load(open('$work/stat.json'))
m, l, first = d['memory'], d['ledger'], d['exports'][0]
assert $2, json.dumps(d, indent=1)" || fail "$1"
  echo "ok: $1"
}

check "who answers" "d['pid'] == $server and d['uptime_s'] >= 0 and d['uris']"
check "pages" "m['pages'] == 440 and m['original_bytes'] == 440 * 4096"
check "kinds of pages" "(m['compressed_pages'], m['incompressible_pages'], m['same_filled_pages']) == (290, 100, 50)"
check "compressed bytes" "290 * 1000 + 100 * 4096 <= m['compressed_bytes'] <= 290 * 1300 + 100 * 4096"
check "exports" "[e['name'] for e in d['exports']] == ['first', 'second']"
check "an export of its own each" "first['pages'] == 440 and d['exports'][1]['pages'] == 0"
check "payload of the classes is that of the ledger" \
  "sum(c['payload_bytes'] for c in d['classes']) == l['payload_bytes'] == m['compressed_bytes']"
check "objects of the classes are the pages with objects" "sum(c['objects'] for c in d['classes']) == 390"
check "the ledger's parts are its sum" \
  "sum(v for k, v in l.items() if k not in ('sum_bytes', 'kernel_resident_bytes', 'kernel_swapped_bytes')) == l['sum_bytes'] == m['resident_bytes']"
check "requests" "d['operations']['write']['requests'] == 470 and d['operations']['trim']['requests'] == 1"
check "bytes" "d['operations']['write']['bytes'] == 470 * 4096 and d['operations']['read']['bytes'] >= 40 * 4096"
check "errors" "d['operations']['read']['errors'] == 1 and d['operations']['write']['errors'] == 0"
check "latencies rise" \
  "0 < d['operations']['write']['latency_p50_ns'] <= d['operations']['write']['latency_p99_ns'] <= d['operations']['write']['latency_max_ns']"
check "connections" "d['connections']['accepted'] >= 1 and d['connections']['broken'] == 0"

"$TUCK" stat --control "$control" >"$work/stat.txt"
for word in first second read write trim payload; do
  expect "the text speaks of $word" grep -qi "$word" "$work/stat.txt"
done
if grep -q '{' "$work/stat.txt"; then fail "the text for people is JSON"; fi

stop_server
status=0
"$TUCK" stat --control "$control" >/dev/null 2>&1 || status=$?
expect_equal "exit status after the server has gone" 1 "$status"

#!/usr/bin/env bash
# nbdinfo: what the server says about itself and its disks.
source "$(dirname "${BASH_SOURCE[0]}")/interop.sh"
needs nbdinfo libnbd-bin
needs nbdcopy libnbd-bin
needs nbdsh python3-libnbd
needs python3 python3

start_server --export first:64M --export second:10M
first="nbd+unix:///first?socket=$socket"
second="nbd+unix:///second?socket=$socket"

expect_equal "size of first" $((64 << 20)) "$(nbdinfo --size "$first")"
expect_equal "size of second" $((10 << 20)) "$(nbdinfo --size "$second")"
expect_equal "size of the default export, which is the first" $((64 << 20)) "$(nbdinfo --size "$uri")"

for flag in connect structured-reply read write trim zero fast-zero flush fua df cache multi-conn; do
  expect "can $flag" nbdinfo --can "$flag" "$first"
done
status=0
nbdinfo --is read-only "$first" || status=$?
expect_equal "exit status of --is read-only" 2 "$status"
status=0
nbdinfo --is rotational "$first" || status=$?
expect_equal "exit status of --is rotational" 2 "$status"

nbdinfo --json "$first" >"$work/info.json"
expect_equal "protocol" newstyle-fixed "$(json 'd["protocol"]' <"$work/info.json")"
expect_equal "structured replies" True "$(json 'd["structured"]' <"$work/info.json")"
expect_equal "name" first "$(json 'd["exports"][0]["export-name"]' <"$work/info.json")"
expect_equal "contexts" "['base:allocation']" "$(json 'd["exports"][0]["contexts"]' <"$work/info.json")"

expect_equal "names in the list" "['first', 'second']" \
  "$(nbdinfo --list --json "$uri" | json 'sorted(e["export-name"] for e in d["exports"])')"
expect_equal "sizes in the list" "[$((10 << 20)), $((64 << 20))]" \
  "$(nbdinfo --list --json "$uri" | json 'sorted(e["export-size"] for e in d["exports"])')"

if nbdinfo --size "nbd+unix:///third?socket=$socket" 2>"$work/third.log"; then
  fail "an export that is not there was served"
fi
expect "an unknown export is refused by name" grep -qiE 'unknown|not|no such' "$work/third.log"

# The map before, with data, and after TRIM. Type 3 is hole and zero, 0 is data.
whole="[(0, $((64 << 20)), 3)]"
extents='[(e["offset"], e["length"], e["type"]) for e in d]'
expect_equal "map of an untouched disk" "$whole" "$(nbdinfo --map --json "$first" | json "$extents")"
pages "$work/data" 8
nbdsh -u "$first" -c "
data = open('$work/data', 'rb').read(8 << 20)
for i in range(0, 8 << 20, 1 << 20):
    h.pwrite(data[i:i + (1 << 20)], (16 << 20) + i)
"
nbdinfo --map --json "$first" >"$work/map.json"
expect "stored pages are within what was written" \
  python3 -c "import json
m = json.load(open('$work/map.json'))
stored = [e for e in m if not e['type'] & 2]
assert stored, m
assert min(e['offset'] for e in stored) >= 16 << 20, m
assert max(e['offset'] + e['length'] for e in stored) <= 24 << 20, m
assert sum(e['length'] for e in stored) > 6 << 20, m
assert sum(e['length'] for e in m) == 64 << 20, m"
expect_equal "the other disk's map" "[(0, $((10 << 20)), 3)]" "$(nbdinfo --map --json "$second" | json "$extents")"
nbdsh -u "$first" -c 'h.trim(4 << 20, 18 << 20)'
nbdinfo --map --json "$first" >"$work/map.json"
expect "the trimmed part is a hole, its neighbours are not" \
  python3 -c "import json
m = json.load(open('$work/map.json'))
for e in m:
    end = e['offset'] + e['length']
    if e['offset'] < 22 << 20 and end > 18 << 20:
        assert e['type'] == 3 or e['offset'] >= 18 << 20 and e['type'] == 3 or end <= 18 << 20, m
inside = [e for e in m if e['offset'] <= 18 << 20 and e['offset'] + e['length'] >= 22 << 20]
assert len(inside) == 1 and inside[0]['type'] == 3, m
assert any(e['type'] == 0 and e['offset'] < 18 << 20 for e in m), m
assert any(e['type'] == 0 and e['offset'] >= 22 << 20 for e in m), m"
nbdsh -u "$first" -c 'h.trim(64 << 20, 0)'
expect_equal "map after TRIM of everything" "$whole" "$(nbdinfo --map --json "$first" | json "$extents")"

stop_server

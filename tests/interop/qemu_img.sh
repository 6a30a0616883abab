#!/usr/bin/env bash
# qemu-img: images in, out, compared and mapped through QEMU's own NBD client.
source "$(dirname "${BASH_SOURCE[0]}")/interop.sh"
needs qemu-img qemu-utils
needs python3 python3

start_server --size 256M

pages "$work/data" 32
# 100 MiB of nothing between two copies, so that there are holes to be found.
truncate -s 256M "$work/image.raw"
dd if="$work/data" of="$work/image.raw" bs=1M conv=notrunc status=none
dd if="$work/data" of="$work/image.raw" bs=1M seek=132 conv=notrunc status=none

expect_equal "virtual size" $((256 << 20)) \
  "$(qemu-img info --output=json -f raw "$uri" | json 'd["virtual-size"]')"
expect "raw in" qemu-img convert -n -m 8 -W -f raw -O raw "$work/image.raw" "$uri"
expect "compare with the file" qemu-img compare -f raw -F raw "$work/image.raw" "$uri"
expect "qcow2 out" qemu-img convert -f raw -O qcow2 "$uri" "$work/image.qcow2"
expect "the qcow2 is whole" qemu-img check -q "$work/image.qcow2"
expect "the qcow2 is the same" qemu-img compare -f qcow2 -F raw "$work/image.qcow2" "$work/image.raw"

qemu-img map --output=json -f raw "$uri" >"$work/map.json"
expect "the map has data where there is some, and none between" \
  python3 -c "import json
m = json.load(open('$work/map.json'))
data = [(e['start'], e['start'] + e['length']) for e in m if e['data']]
assert sum(e['length'] for e in m) == 256 << 20, m
assert sum(end - start for start, end in data) > 40 << 20, m
for start, end in data:
    assert end <= 32 << 20 or 132 << 20 <= start and end <= 164 << 20, (start, end)"

# A different image over it: what was there before must not shine through.
expect "qcow2 in, over the old content" qemu-img create -q -f qcow2 "$work/other.qcow2" 256M
expect "an empty image in" qemu-img convert -n -f qcow2 -O raw "$work/other.qcow2" "$uri"
expect "the disk is empty" qemu-img compare -f qcow2 -F raw "$work/other.qcow2" "$uri"
status=0
qemu-img compare -q -f raw -F raw "$work/image.raw" "$uri" || status=$?
expect_equal "exit status of a comparison with what was there" 1 "$status"

stop_server

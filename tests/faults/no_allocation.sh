#!/usr/bin/env bash
# A server under strace: from its warm-up on, over a million requests, no thread that serves asks the
# system for memory (brk, mmap) or gives any back. The pool's own frames come and go by madvise and
# are only counted.
#
#   TUCK_REQUESTS   of 4 KiB, reads and writes (1000000)
source "$(dirname "${BASH_SOURCE[0]}")/../interop/interop.sh"
needs strace strace
needs fio fio
fio --enghelp 2>/dev/null | grep -qw nbd || skip "this fio has no nbd engine"
needs nbdsh python3-libnbd
strace -D -f --seccomp-bpf -o /dev/null true 2>/dev/null || skip "strace may not trace here"

readonly requests=${TUCK_REQUESTS:-1000000}
readonly traced=brk,mmap,munmap,mremap,mprotect,madvise
trace=$work/trace

# The server is the shell's own child, and strace its grandchild: signals reach the server.
program=$TUCK
cat >"$work/traced" <<END
#!/bin/sh
[ "\$1" = serve ] || exec "$program" "\$@"
exec strace -D -f --seccomp-bpf -qq -o "$trace" -e trace=$traced -e signal=none "$program" "\$@"
END
chmod +x "$work/traced"
TUCK=$work/traced

# load NAME REQUESTS: four connections, a quarter of the disk each.
load() {
  (cd "$work" && fio --name="$1" --ioengine=nbd --uri="$uri" --numjobs=4 --size=64M --offset_increment=64M \
    --rw=randrw --bs=4k --iodepth=32 --number_ios=$(($2 / 4)) --io_size=1T --norandommap --randseed=1 \
    --refill_buffers --buffer_compress_percentage=60 --group_reporting --output="$1.log") ||
    { cat "$work/$1.log" && fail "fio $1"; }
}

# All other kinds, some of them at odd places.
others() {
  nbdsh --base-allocation -u "$uri" -c '
import random
rng = random.Random(1)
for i in range(500):
    at = rng.randrange(0, 255 << 20)
    n = rng.randrange(1, 1 << 20)
    h.zero(n, at)
    h.zero(n, at, nbd.CMD_FLAG_NO_HOLE)
    h.trim(n, at)
    h.pwrite(rng.randbytes(n // 16 + 1), at)
    h.pread(n, at)
    h.cache(n, at)
    h.block_status(n, at, lambda *args: 0)
    h.flush()
'
}

served() { "$program" stat --control "$control" --json | json 'sum(o["requests"] for o in d["operations"].values())'; }

start_server --size 256M --workers 2
load warm-up 200000
others
# Whoever serves has done each thing once by now.
warm=$(wc -l <"$trace")
before=$(served)
load million "$requests"
others
answered=$(($(served) - before))
lines=$(($(wc -l <"$trace") - warm))
names=$(for task in "/proc/$server/task"/*; do echo "${task##*/} $(<"$task/comm")"; done)
stop_server

((warm > 0)) || fail "strace has seen nothing at all"
echo "$answered requests after the warm-up (which made $warm such calls)"
((answered >= requests)) || fail "only $answered of $requests requests were answered"

# What each thread did before the mark, and from there to the end of the requests. The main thread
# answers tuck stat, and is allowed to allocate. That a worker is seen to map its ring at the start says
# that the others would be seen too.
head -n $((warm + lines)) "$trace" >"$work/calls"
awk -v names="$names" -v warm="$warm" '
  BEGIN {
    count = split(names, line, "\n")
    for (i = 1; i <= count; i++) { split(line[i], word, " "); order[i] = word[1]; name[word[1]] = word[2] }
  }
  {
    call = $2
    sub(/\(.*/, "", call)
    when = NR <= warm ? "before" : "after"
    if (call == "madvise") frames[when, $1]++
    else if (call ~ /^(brk|mmap|munmap|mremap|mprotect)$/) calls[when, $1]++
  }
  END {
    print "thread             brk, mmap, munmap, mremap, mprotect   madvise of the pool"
    for (i = 1; i <= count; i++) {
      id = order[i]
      printf "%-16s %10d, then %10d %12d, then %10d\n", name[id], calls["before", id], calls["after", id],
        frames["before", id], frames["after", id]
      if (name[id] !~ /^tuck-(nbd-|background|listen)/) continue
      serving++
      if (calls["after", id] > 0) bad++
      if (name[id] ~ /^tuck-nbd-/ && calls["before", id] == 0) { print "not seen at its start"; bad++ }
    }
    if (serving < 4) { print "the serving threads are not there under their names"; bad++ }
    exit bad > 0
  }' "$work/calls" || fail "a thread that serves has allocated, or the test does not see it"

"""--swap and --lock-memory: the protections of the real program, as the kernel sees them.

    swap_protection_test.py --tuck build/debug/bin/tuck [unittest options]
"""

import os
import re
import resource
import signal

from nbd_client import NbdClient
from tuck_process import TuckTest, run_tests

PAGE = 4096
CAP_SYS_RESOURCE = 24
IO_FLUSHER = 0x80000 | 0x100000


def has_capability(number):
    with open("/proc/self/status", encoding="ascii") as status:
        mask = int(re.search(r"^CapEff:\s*(\w+)", status.read(), re.M).group(1), 16)
    return mask >> number & 1 == 1


def task_stats(pid):
    """{name: [(flags, minor faults, major faults), …]} of all threads."""
    tasks = {}
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/stat", encoding="utf-8") as file:
            text = file.read()
        name = text[text.index("(") + 1 : text.rindex(")")]
        fields = text[text.rindex(")") + 2 :].split()
        tasks.setdefault(name, []).append((int(fields[6]), int(fields[7]), int(fields[9])))
    return tasks


def mappings(pid):
    """(header, {field: kB}, flags) of each mapping."""
    found = []
    with open(f"/proc/{pid}/smaps", encoding="utf-8") as smaps:
        for line in smaps:
            if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
                found.append((line.strip(), {}, []))
            elif line.startswith("VmFlags:"):
                found[-1][2].extend(line.split()[1:])
            elif match := re.match(r"(\w+):\s+(\d+) kB", line):
                found[-1][1][match.group(1)] = int(match.group(2))
    return found


class LockMemory(TuckTest):
    def serve_locked(self, *arguments):
        server = self.serve("--unix", "s", "--lock-memory", *arguments)
        lock = self.stat()["protections"]["at_start"]["memory_lock"]
        if not lock["holds"]:
            self.assertRegex(lock["detail"], "CAP_IPC_LOCK|mlockall")
            self.skipTest("memory cannot be locked here: " + lock["detail"])
        return server

    def test_everything_is_resident_and_locked_before_the_first_client(self):
        server = self.serve_locked("--size", "64M", "--connections", "3")
        buffers = False
        for header, figures, flags in mappings(server.pid):
            if " ---p " in header or "[v" in header or "anon_inode" in header:
                continue
            self.assertIn("lo", flags, header)
            if "nr" in flags:  # the pool's addresses
                continue
            self.assertEqual(figures["Rss"], figures["Size"], header)
            # Three connections' buffers, about 800 KiB each.
            buffers |= header.endswith(" 0") and 2000 <= figures["Size"] <= 8000
        self.assertTrue(buffers, "the connections' buffers are nowhere")
        self.stop(server)

    def test_work_faults_nothing_in(self):
        server = self.serve_locked("--size", "64M", "--reserve", "24M")
        client = NbdClient.on_unix(self.path("s"))
        before = None
        for round_ in range(3):
            for slot in range(2000):
                client.write(os.urandom(PAGE // 4) + bytes(3 * PAGE // 4), slot * PAGE)
                self.assertEqual(len(client.read(PAGE, slot * PAGE)), PAGE)
            if round_ == 0:
                before = task_stats(server.pid)
        after = task_stats(server.pid)
        self.assertGreaterEqual(sum(name.startswith("tuck-nbd") for name in after), 1)
        for name, threads in after.items():
            if name.startswith("tuck-nbd"):
                for (_, minor, major), (_, minor_before, major_before) in zip(
                    threads, before[name]
                ):
                    self.assertEqual(major, major_before, name)
                    # A few: the kernel may move locked pages to make room for larger ones.
                    self.assertLess(minor - minor_before, 100, name)
        self.assertEqual(self.stat()["process"]["swapped_bytes"], 0)
        client.close()
        self.stop(server)

    def test_what_is_not_to_be_had_is_said_and_done_without(self):
        server = self.serve("--unix", "s", "--size", "1M", "--lock-memory")
        protections = self.stat()["protections"]
        for name, one in protections["at_start"].items():
            self.assertRegex(
                self.log_of(server), f"protection {name}: {'holds' if one['holds'] else 'missing'}"
            )
        self.assertGreaterEqual(protections["threads"], 5)
        if not has_capability(CAP_SYS_RESOURCE):
            self.assertFalse(protections["at_start"]["io_flusher"]["holds"])
            self.assertFalse(protections["at_start"]["oom_score_adj"]["holds"])
            self.assertEqual(protections["threads_without_io_flusher"], protections["threads"])
        client = NbdClient.on_unix(self.path("s"))
        client.write(b"x" * PAGE, 0)
        self.assertEqual(client.read(PAGE, 0), b"x" * PAGE)
        client.close()
        self.stop(server)

    def test_without_the_right_to_lock(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_MEMLOCK, (64 << 10, 64 << 10))

        # Root has the right whatever the limit; it can be taken out of what a program may get.
        drop = ["setpriv", "--bounding-set", "-ipc_lock"] if os.geteuid() == 0 else []
        server = self.serve(
            *("--unix", "s", "--size", "1M", "--lock-memory"),
            command=[*drop, self.tuck],
            preexec_fn=limit,
        )
        lock = self.stat()["protections"]["at_start"]["memory_lock"]
        self.assertFalse(lock["holds"])
        self.assertIn("LimitMEMLOCK=infinity", lock["detail"])
        client = NbdClient.on_unix(self.path("s"))
        client.write(b"x" * PAGE, 0)
        self.assertEqual(client.read(PAGE, 0), b"x" * PAGE)
        client.close()
        self.stop(server)


class Swap(TuckTest):
    def test_refuses_by_name(self):
        if has_capability(CAP_SYS_RESOURCE):
            self.skipTest("this process has CAP_SYS_RESOURCE: nothing is missing")
        self.assert_refused(
            1,
            ["--swap", "io_flusher", "CAP_SYS_RESOURCE", "oom_score_adj", "--lock-memory"],
            *("serve", "--unix", "s", "--size", "1M", "--swap"),
        )
        self.assertFalse(os.path.exists(self.path("s")))

    def test_has_all(self):
        if not has_capability(CAP_SYS_RESOURCE):
            self.skipTest("no CAP_SYS_RESOURCE here; the guests of tests/guest have it")
        server = self.serve("--unix", "s", "--size", "64M", "--swap")
        for name, threads in task_stats(server.pid).items():
            for flags, _, _ in threads:
                self.assertEqual(flags & IO_FLUSHER, IO_FLUSHER, name)
        self.assertEqual(self.stat()["process"]["oom_score_adj"], -1000)
        # A client that uses the disk may have swapped out to it.
        client = NbdClient.on_unix(self.path("s"))
        client.write(b"x" * PAGE, 0)
        server.send_signal(signal.SIGTERM)
        self.assertEqual(client.read(PAGE, 0), b"x" * PAGE)
        self.wait_for_log(server, "not stopping yet: 1 connections")
        self.assertEqual(client.read(PAGE, 0), b"x" * PAGE)
        client.close()
        self.assert_ends(server, 0)


if __name__ == "__main__":
    run_tests()

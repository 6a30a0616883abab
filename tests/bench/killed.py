#!/usr/bin/env python3
"""killed.py TUCK_BENCH: a bench that is killed in the middle leaves the machine as it was.

The tables that change something are killed, in several ways and at several moments, once they have: density makes zram
devices, codecs swaps onto one and sets which sizes of huge pages there are. Then everything has to be as it was before,
and no program of it may run.
"""
import glob
import itertools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid

# Each table, and the beginning of the name of that which it has to have changed before it is killed.
TABLES = {"density": "/sys/block/zram", "codecs": "/proc/swaps"}
PAGES = 4096
PATIENCE = 60  # seconds; only a hang takes that long
# Seconds between the first change that is seen and the kill.
MOMENTS = [0, 0.3, 1.5]
# What is killed: the program that was started, or its worker.
WAYS = [("the program", signal.SIGTERM), ("the program", signal.SIGKILL), ("the worker", signal.SIGKILL)]


def skip(reason):
    print(f"SKIPPED: {reason}")
    sys.exit(77)


def text_of(path):
    """A file's text; empty where it is gone or cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def machine():
    """What a bench may change: swap, zram devices with their sizes, settings of huge pages, its own files."""
    state = {"/proc/swaps": sorted(line.split()[0] for line in text_of("/proc/swaps").splitlines()[1:])}
    for device in glob.glob("/sys/block/zram*"):
        state[device] = text_of(device + "/disksize").strip()
    for pattern in ("*enabled", "*/*enabled"):
        for path in glob.glob("/sys/kernel/mm/transparent_hugepage/" + pattern):
            state[path] = text_of(path).strip()
    for folder in {"/tmp", "/dev/shm", os.environ.get("TMPDIR", "/tmp")}:
        for path in glob.glob(folder + "/tuck-bench*"):
            state[path] = "is there"
    return state


def differences(before, now):
    return [
        f"{name}: {before.get(name, 'not there')} before, {now.get(name, 'not there')} now"
        for name in sorted(before.keys() | now.keys())
        if before.get(name) != now.get(name)
    ]


def environment_of(pid):
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read()
    except OSError:
        return b""


class Bench:
    """One run. All programs that it starts inherit a mark, by which they are found wherever they went."""

    def __init__(self, program, table, pages):
        self.mark = f"TUCK_BENCH_KILLED_TEST={uuid.uuid4()}"
        name, value = self.mark.split("=")
        self.process = subprocess.Popen(
            [program, table, "--corpus", pages, "--rounds", "1000", "--seconds", "0.05"],
            env={**os.environ, name: value},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def programs(self):
        """Process ids of all that is left of it, zombies apart: those have no environment."""
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
        return [pid for pid in pids if self.mark.encode() in environment_of(pid).split(b"\0")]

    def worker(self):
        """The child that has a process group of its own and leads it, and no session."""
        for pid in self.programs():
            is_child = f"PPid:\t{self.process.pid}\n" in text_of(f"/proc/{pid}/status")
            try:
                if is_child and os.getpgid(pid) == pid and os.getsid(pid) != pid:
                    return pid
            except ProcessLookupError:
                pass
        return None

    def end(self):
        for pid in self.programs():
            os.kill(pid, signal.SIGKILL)
        self.process.wait()


def wait_for(condition):
    """What condition() returned when that was true, or last."""
    end = time.monotonic() + PATIENCE
    while not (value := condition()) and time.monotonic() < end:
        time.sleep(0.01)
    return value


def has_changed(before, what):
    return any(line.startswith(what) for line in differences(before, machine()))


def write_pages(file):
    """Few, so that the tables are soon where they are to be killed; each is different, and compresses to a quarter."""
    for _ in range(PAGES):
        file.write(os.urandom(1024) + bytes(3072))
    file.flush()


def kill_one(program, table, pages, before, way, moment):
    """One bench, killed that way at that moment. Returns what is wrong afterwards, as sentences."""
    who, number = way
    bench = Bench(program, table, pages)
    try:
        changed = wait_for(lambda: has_changed(before, TABLES[table]) or bench.process.poll() is not None)
        if bench.process.poll() is not None:
            return [f"it ended with {bench.process.returncode} before it changed {TABLES[table]}"]
        if not changed:
            return [f"it did not change {TABLES[table]} in {PATIENCE} s"]
        time.sleep(moment)
        pid = bench.process.pid if who == "the program" else bench.worker()
        if pid is None:
            return ["it has no worker"]
        os.kill(pid, number)
        status = bench.process.wait(PATIENCE)
        wrong = []
        if who == "the program" and number != signal.SIGKILL and status != 128 + number:
            wrong.append(f"it exited with {status}")
        # Only when it was killed outright may there be something left to do when it has ended.
        if who == "the program" and number == signal.SIGKILL:
            wait_for(lambda: not bench.programs())
        wrong += differences(before, machine())
        wait_for(lambda: not bench.programs())
        wrong += [f"process {pid} runs on: {text_of(f'/proc/{pid}/comm').strip()}" for pid in bench.programs()]
        return wrong
    finally:
        bench.end()


def main():
    program = sys.argv[1]
    if os.geteuid() != 0:
        skip("zram devices need root")
    if not os.path.exists("/sys/class/zram-control") and shutil.which("modprobe"):
        subprocess.run(["modprobe", "zram"], stderr=subprocess.DEVNULL, check=False)
    if not os.path.exists("/sys/class/zram-control/hot_add"):
        skip("the kernel has no zram")
    before = machine()
    failed = False
    with tempfile.NamedTemporaryFile(prefix="tuck-killed-") as pages:
        write_pages(pages)
        for table, way, moment in itertools.product(TABLES, WAYS, MOMENTS):
            wrong = kill_one(program, table, pages.name, before, way, moment)
            failed = failed or bool(wrong)
            verdict = "FAILED" if wrong else "right"
            print(f"{table}: {way[1].name} to {way[0]}, {moment} s after the change: {verdict}", flush=True)
            for sentence in wrong:
                print(f"  {sentence}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

"""Fills a Python heap: syntax trees, sources, word indexes and bytecode of the standard library,
records in dicts, lists and objects. Usage: python3 python.py MEBIBYTES; prints "ready" and waits.
"""
import array
import ast
import collections
import pathlib
import random
import re
import sys
import sysconfig
import time
import warnings
import zlib


class Account:
    def __init__(self, number, owner, balance):
        self.number = number
        self.owner = owner
        self.balance = balance
        self.history = []


def anonymous_kib():
    text = pathlib.Path("/proc/self/status").read_text()
    return int(re.search(r"^RssAnon:\s+(\d+)", text, re.M).group(1))


def make_accounts(source, count):
    accounts = {}
    for _ in range(count):
        number = source.randrange(10**8)
        account = Account(number, f"owner {source.randrange(20000)}", source.random() * 1e5)
        account.history = [(day, source.randrange(-500, 500)) for day in range(source.randrange(9))]
        accounts[number] = account
    return accounts


def step(path, source, kept):
    text = path.read_text(encoding="utf-8", errors="replace")
    try:
        tree = ast.parse(text)
        kept.append((tree, compile(text, str(path), "exec")))
    except (SyntaxError, ValueError):
        pass
    index = collections.defaultdict(list)
    for row, line in enumerate(text.splitlines()):
        for word in re.findall(r"\w+", line):
            index[word].append(row)
    kept.append((str(path), text, dict(index)))
    kept.append(make_accounts(source, 100))
    kept.append([source.random() for _ in range(500)])
    kept.append(zlib.compress(text.encode()))
    sparse = array.array("q", bytes(8 * 4096))
    for _ in range(150):
        sparse[source.randrange(4096)] = source.randrange(1 << 20)
    kept.append(sparse)
    # A heap that has lived: holes, and what was in them.
    kept[source.randrange(len(kept))] = None


def main():
    warnings.simplefilter("ignore")
    target = int(sys.argv[1]) * 1024
    source = random.Random(12345)
    paths = sorted(pathlib.Path(sysconfig.get_path("stdlib")).glob("*.py"))
    kept = []
    done = 0
    while anonymous_kib() < target:
        step(paths[done % len(paths)], source, kept)
        done += 1
    print("ready", flush=True)
    while True:
        time.sleep(3600)


main()

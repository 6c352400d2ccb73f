#!/usr/bin/env python3
"""Prints how much of each command runs on one thread, and the speed-up on more cores that follows (Amdahl's law).

usage: amdahl.py RPERF [ROW...]   (ROW: number of a row, from 0; needs valgrind, fp.data and tp.data in the current folder)

Each row runs once with four threads under `valgrind --tool=callgrind`, which counts the instructions of each thread
and simulates the caches:

- serial: instructions of the main thread outside of work that threads share (`on_threads` and the like).
- concurrent: instructions of single threads that run at the same time as others, such as the reader of kallsyms.
- parallel: instructions of shared work, on all threads.
- moved: last-level cache misses, times the size of a cache line.

The speed-up is that of (serial + parallel) instructions. It is an upper limit: the threads share the memory bandwidth,
a stage ends when its last thread does, and the symbols of one object are read by one thread. Time in the kernel is not
counted.
"""
import glob
import os
import re
import subprocess
import sys
import tempfile

# File and arguments of each row.
ROWS = [
    ("fp", "report --stdio --no-inline"),
    ("fp", "report --stdio --no-children -g none --no-inline"),
    ("fp", "script --no-inline"),
    ("tp", "report --stdio --no-children"),
    ("tp", "script"),
]
THREADS = 4
CORES = (4, 16, 64)
CACHE_LINE = 64
# Functions of the main thread in which it works as one of several threads.
SHARED = re.compile(r"\bon_threads\b|\brender_block\b")
# Functions that run in one thread while the others work.
CONCURRENT = re.compile(r"\bkallsyms::read\b")


class Thread:
    """The counts of one thread, or of several with the same number one after the other: an output file of callgrind."""

    def __init__(self, path):
        self.names = {}
        self.total = {}
        # Inclusive instructions of calls, by caller and called function.
        self.calls = {}
        self.read(path)

    def name(self, text):
        number, _, name = text.partition(" ")
        if name:
            self.names[number] = name
        return self.names.get(number, number)

    def read(self, path):
        caller = called = None
        is_call = False
        with open(path, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                line = line.rstrip("\n")
                key, equals, value = line.partition("=")
                if line.startswith("events: "):
                    self.events = line.split()[1:]
                elif line.startswith(("summary: ", "totals: ")):
                    numbers = [int(number) for number in line.split()[1:]]
                    self.total = dict(zip(self.events, numbers))
                elif equals and key == "fn":
                    caller = self.name(value)
                elif equals and key == "cfn":
                    called = self.name(value)
                elif equals and key == "calls":
                    is_call = True
                elif is_call:
                    is_call = False
                    counts = line.split()
                    cost = int(counts[1]) if len(counts) > 1 else 0
                    self.calls[caller, called] = self.calls.get((caller, called), 0) + cost

    def instructions(self):
        return self.total.get("Ir", 0)

    def moved(self):
        return CACHE_LINE * sum(self.total.get(event, 0) for event in ("ILmr", "DLmr", "DLmw"))

    def shared(self):
        """Instructions of shared work, by the function that shares it."""
        by_caller = {}
        for (caller, called), cost in self.calls.items():
            if SHARED.search(called) and not SHARED.search(caller):
                by_caller[caller] = by_caller.get(caller, 0) + cost
        return by_caller

    def concurrent(self):
        """Instructions of work that runs at the same time as the work of other threads."""
        calls = self.calls.items()
        return sum(cost for (caller, called), cost in calls if CONCURRENT.search(called) and not CONCURRENT.search(caller))


def threads_of(command):
    """The counts of each thread of a command, the main thread's first."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out")
        counted = ["valgrind", "--tool=callgrind", "--separate-threads=yes", "--cache-sim=yes"]
        counted.append(f"--callgrind-out-file={out}")
        done = subprocess.run(counted + command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
        if done.returncode != 0:
            sys.exit(f"amdahl: {' '.join(command)}: {done.stderr.decode(errors='replace')}")
        files = sorted(glob.glob(f"{out}-*"))
        return [Thread(path) for path in files]


def millions(number):
    return f"{number / 1e6:,.0f}"


def row(rperf, file, arguments):
    command = [rperf] + arguments.split() + ["-i", f"{file}.data", "-j", str(THREADS)]
    main, *others = threads_of(command)
    stages = main.shared()
    concurrent = sum(thread.concurrent() for thread in others)
    serial = main.instructions() - sum(stages.values())
    parallel = sum(stages.values()) + sum(thread.instructions() for thread in others) - concurrent
    moved = sum(thread.moved() for thread in [main, *others])
    share = serial / (serial + parallel)
    speed = [f"{1 / (share + (1 - share) / cores):.1f}" for cores in CORES]
    print(
        f"| `{arguments}`, {file} | {millions(serial)} | {millions(parallel)} | {millions(concurrent)} "
        f"| {millions(moved)} | {100 * share:.1f} % | {' | '.join(speed)} |",
        flush=True,
    )
    for stage, cost in sorted(stages.items(), key=lambda item: -item[1]):
        print(f"  {stage}: {millions(cost)} on the main thread", file=sys.stderr, flush=True)


def main():
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    speeds = " | ".join(f"{cores} cores" for cores in CORES)
    print(f"| command, file | serial | parallel | concurrent | moved, MB | serial share | {speeds} |")
    print("|" + " --- |" * (6 + len(CORES)))
    for number, (file, arguments) in enumerate(ROWS):
        if len(sys.argv) == 2 or str(number) in sys.argv[2:]:
            row(sys.argv[1], file, arguments)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Runs two commands in turns and prints medians beside each other.

usage: compare.py [-n ROUNDS] [--row JOB [--limit SECONDS]] NAME COMMAND NAME COMMAND

Each command runs in a shell with its output sent to /dev/null. Figures are of the whole process tree:
wall and CPU (user + system) seconds, peak resident and peak anonymous memory (RssAnon, sampled every
5 ms from /proc of the main process). With --row one line of a table: CPU, wall and anonymous memory of
either, how often the second's CPU goes into the first's, and the second's wall as a multiple of the limit.
"""
import argparse
import os
import statistics
import subprocess
import time


def anonymous_kib(pid):
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8") as status:
            for line in status:
                if line.startswith("RssAnon:"):
                    return int(line.split()[1])
    except OSError:
        pass
    return 0


def run(command):
    start = time.monotonic()
    child = subprocess.Popen(
        ["sh", "-c", "exec " + command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    peak = 0
    while True:
        pid, status, usage = os.wait4(child.pid, os.WNOHANG)
        if pid:
            break
        peak = max(peak, anonymous_kib(child.pid))
        time.sleep(0.005)
    child.returncode = os.waitstatus_to_exitcode(status)
    wall = time.monotonic() - start
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, peak / 1024, child.returncode


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("-n", type=int, default=5, help="rounds")
    arguments.add_argument("--row", metavar="JOB", help="print one row of a table")
    arguments.add_argument("--limit", type=float, help="seconds that nothing can be faster than")
    arguments.add_argument("words", nargs=4, metavar=("NAME COMMAND"))
    options = arguments.parse_args()
    pairs = [(options.words[0], options.words[1]), (options.words[2], options.words[3])]
    results = {name: [] for name, _ in pairs}
    for _ in range(options.n):
        for name, command in pairs:
            results[name].append(run(command))
    medians = {}
    for name, rows in results.items():
        medians[name] = [statistics.median(column) for column in zip(*rows)]
    first, second = (medians[name] for name, _ in pairs)
    if options.row:
        cells = [f"{m[1]:.2f} s, {m[0]:.2f} s, {m[3]:.0f} MB" for m in (first, second)]
        limit = f"{second[0] / options.limit:.0f}" if options.limit else ""
        print(f"| {options.row} | {cells[0]} | {cells[1]} | {first[1] / max(second[1], 1e-9):.1f} | {limit} |")
        return
    for name, _ in pairs:
        wall, cpu, rss, anonymous, status = medians[name]
        print(f"{name:>10}: wall {wall:8.3f} s  cpu {cpu:8.3f} s  rss {rss:8.1f} MB  anon {anonymous:8.1f} MB  status {status:.0f}")
    print(f"{'ratio':>10}: wall {first[0] / second[0]:8.1f}    cpu {first[1] / max(second[1], 1e-9):8.1f}    (first / second)")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Runs one command, or two alternately, and prints the medians of their figures.

usage: compare.py [-n ROUNDS] [--row JOB [--limit SECONDS | --walls]] [--stop SECONDS] [--memory GB]
                  [--kept FILE] NAME COMMAND [NAME COMMAND]

Each command runs in a shell with its output sent to /dev/null. Figures: wall seconds, CPU seconds (user + system)
of the whole process tree, peak resident memory of its largest process, and peak anonymous memory of the main process
(RssAnon in /proc, sampled every 5 ms).
--row prints one row of a table: CPU, wall and anonymous memory of each command, the ratio of the CPU times (first /
second), and the second's wall time as a multiple of --limit, the least time in which the job could be done. With
--walls: both wall times and their ratio (second / first).
A command that runs longer than --stop is killed, and the row says so; after a round of 20 s or more, a command has no
further rounds.
With --kept, the first command's figures are read from FILE; if FILE does not have them, they are measured and added.
"""
import argparse
import errno
import json
import os
import signal
import statistics
import subprocess
import tempfile
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


class Bounds:
    """Limits of a command: seconds, and GB of address space."""

    def __init__(self, stop, memory):
        self.stop = stop
        self.prefix = f"ulimit -v {int(memory * 1e6)}; " if memory else ""


def run(command, bounds):
    start = time.monotonic()
    errors = tempfile.TemporaryFile()
    child = subprocess.Popen(
        ["sh", "-c", f"{bounds.prefix}exec {command}"], stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True
    )
    # If memory runs out, the kernel kills the measured command first.
    with open(f"/proc/{child.pid}/oom_score_adj", "w", encoding="utf-8") as score:
        score.write("1000")
    peak = 0
    while True:
        pid, status, usage = os.wait4(child.pid, os.WNOHANG)
        if pid:
            break
        peak = max(peak, anonymous_kib(child.pid))
        if time.monotonic() - start > bounds.stop:
            os.killpg(child.pid, signal.SIGKILL)
        time.sleep(0.005)
    child.returncode = os.waitstatus_to_exitcode(status)
    wall = time.monotonic() - start
    errors.seek(0)
    # perf 6.1 exits with 0 when memory runs out.
    code = errno.ENOMEM if b"Cannot allocate memory" in errors.read(1 << 20) else child.returncode
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, peak / 1024, code


def measure(pairs, rounds, bounds):
    """Medians of wall, CPU, resident, anonymous and status for each name."""
    results = {name: [] for name, _ in pairs}
    for _ in range(rounds):
        for name, command in pairs:
            if not results[name] or results[name][-1][0] < 20:
                results[name].append(run(command, bounds))
    return {name: [statistics.median(column) for column in zip(*rows)] for name, rows in results.items()}


def kept(path, pair, rounds, bounds):
    """The first command's figures from the file; if missing, they are measured and written to it."""
    try:
        with open(path, encoding="utf-8") as file:
            figures = json.load(file)
    except OSError:
        figures = {}
    if pair[1] not in figures:
        figures[pair[1]] = measure([pair], rounds, bounds)[pair[0]]
        with open(path, "w", encoding="utf-8") as file:
            json.dump(figures, file, indent=1)
    return figures[pair[1]]


def cell(figures):
    wall, cpu, _, anonymous, status = figures
    if status == -signal.SIGKILL:
        return f"> {wall:.0f} s, {anonymous:.0f} MB by then"
    if status == errno.ENOMEM:
        return f"out of memory at {anonymous:.0f} MB, after {wall:.0f} s"
    return f"{cpu:.2f} s, {wall:.2f} s, {anonymous:.0f} MB" + (f" (status {status:.0f})" if status else "")


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("-n", type=int, default=5, help="rounds")
    arguments.add_argument("--row", metavar="JOB", help="print one row of a table")
    arguments.add_argument("--limit", type=float, help="lower bound of the wall time in seconds")
    arguments.add_argument("--stop", type=float, default=180, help="seconds after which a command is killed")
    arguments.add_argument("--kept", metavar="FILE", help="file with the figures of the first command")
    arguments.add_argument("words", nargs="+", metavar=("NAME COMMAND"))
    arguments.add_argument("--walls", action="store_true", help="print only wall times in the row, and their ratio")
    arguments.add_argument("--memory", type=float, help="GB of address space that a command may have")
    options = arguments.parse_args()
    if len(options.words) not in (2, 4):
        arguments.error("one or two pairs of NAME and COMMAND")
    pairs = list(zip(options.words[::2], options.words[1::2]))
    bounds = Bounds(options.stop, options.memory)
    medians = {}
    if options.kept:
        medians[pairs[0][0]] = kept(options.kept, pairs[0], options.n, bounds)
    medians |= measure([pair for pair in pairs if pair[0] not in medians], options.n, bounds)
    first, second = (medians[name] for name, _ in (pairs[0], pairs[-1]))
    if options.row and options.walls:
        print(f"| {options.row} | {first[0]:.2f} s | {second[0]:.2f} s | {second[0] / first[0]:.2f} |", flush=True)
        return
    if options.row:
        cells = " | ".join(cell(medians[name]) for name, _ in pairs)
        limit = f"{second[0] / options.limit:.0f}" if options.limit else ""
        more = ">" if first[4] in (-signal.SIGKILL, errno.ENOMEM) else ""
        ratio = f" | {more}{first[1] / max(second[1], 1e-9):.1f} | {limit}" if len(pairs) > 1 else ""
        print(f"| {options.row} | {cells}{ratio} |", flush=True)
        return
    for name, _ in pairs:
        wall, cpu, rss, anonymous, status = medians[name]
        print(f"{name:>10}: wall {wall:8.3f} s  cpu {cpu:8.3f} s  rss {rss:8.1f} MB  anon {anonymous:8.1f} MB  status {status:.0f}")
    print(f"{'ratio':>10}: wall {first[0] / second[0]:8.1f}    cpu {first[1] / max(second[1], 1e-9):8.1f}    (first / second)", flush=True)


if __name__ == "__main__":
    main()

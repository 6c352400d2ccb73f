#!/usr/bin/env python3
"""Measures the cost of recording with Linux perf and rperf alternately: each row of the tables by its name.

usage: record.py [-n ROUNDS] [--scale PART] [--perf PERF] RPERF ROW...       (root)

Rows:
  feedback   samples of the recorder's own system calls, as a share of the 3 million calls of a traced loop
  lost       share of lost samples of that loop, with the default rings and with rings of 16 MB
  end        seconds from Ctrl-C to the prompt after a recording of 1 GB (and of 256 MB)
  start      milliseconds from the start of the recorder to the first sample, with 200 processes that sleep
  cpu        the recorder's CPU seconds, in all and for each million samples: -a -g -F 9997 for ten seconds
  copies     CPU, samples and bytes of each sample, with stack copies stored or unwound while recording (-F 2000, 5 s)
  memory     the recorder's peak memory and CPU at ten times the samples (1.5 and 15 million), and with -z

Each figure is the median of the rounds; only figures of one row can be compared. The recordings are written to a new
folder in TMPDIR, which needs 2 GB. --scale 0.01 takes a hundredth of the calls and bytes, to test a row quickly.
"""
import argparse
import os
import re
import shutil
import signal
import statistics
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SYSCALLS = "-a -e raw_syscalls:sys_enter"


class FinishedRecorder:
    """A recorder that has exited: pid, wall seconds, CPU seconds, peak memory in MB, and its stderr."""

    def __init__(self, child, began):
        errors = child.stderr.read().decode()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        self.pid = child.pid
        self.wall = time.monotonic() - began
        self.cpu = usage.ru_utime + usage.ru_stime
        self.memory = usage.ru_maxrss / 1024
        self.errors = errors


def begin(command):
    began = time.monotonic()
    return subprocess.Popen(command.split(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE), began


def clear():
    for old in ("r.data", "r.data.old"):
        if os.path.isdir(old):
            shutil.rmtree(old)
        elif os.path.exists(old):
            os.remove(old)


def record(tool, options, workload):
    clear()
    return FinishedRecorder(*begin(f"{tool} record -o r.data {options} {workload}"))


class Bench:
    def __init__(self, options):
        self.tools = [("perf", options.perf), ("rperf", options.rperf)]
        self.rperf = options.rperf
        self.rounds = options.n
        self.scale = options.scale

    def scaled(self, number):
        """A number of calls or bytes, multiplied by --scale."""
        return max(1, int(number * self.scale))

    def row(self, name, figures, tools=None):
        """Prints a row of a table. `figures(tool)` returns a format and numbers; a cell shows the medians of the numbers."""
        results = {tool: [] for tool, _ in tools or self.tools}
        for _ in range(self.rounds):
            for tool, path in tools or self.tools:
                results[tool].append(figures(path))
        cells = []
        for tool, _ in tools or self.tools:
            shape = results[tool][0][0]
            columns = zip(*(numbers for _, numbers in results[tool]))
            cells.append(shape.format(*(statistics.median(column) for column in columns)))
        print(f"| {name} | {' | '.join(cells)} |", flush=True)

    def samples_by(self, keys):
        """Pairs of sample count and row text of a report of r.data with these sort keys."""
        report = [self.rperf, "report", "-i", "r.data", "--stdio", "-q", "-n", "-g", "none", "--no-children", "-s", keys]
        text = subprocess.run(report, capture_output=True, text=True, check=True).stdout
        rows = re.findall(r"^ *[\d.]+% +(\d+) +(.*?) *$", text, re.M)
        return [(int(count), key) for count, key in rows]

    def feedback(self):
        calls = self.scaled(3000000)

        def own(extra):
            def figures(tool):
                done = record(tool, f"{extra} {SYSCALLS}", f"./syscalls {calls}")
                rows = self.samples_by("pid")
                mine = sum(count for count, key in rows if key.startswith(f"{done.pid}:"))
                return "{:.2f} %", [100 * mine / calls]

            return figures

        self.row("own system calls, of those of the loop", own(""))
        self.row("the same with `--threads`", own("--threads"))

    def lost(self):
        calls = self.scaled(3000000)

        def lost(size):
            def figures(tool):
                record(tool, f"-m {size} {SYSCALLS}", f"./syscalls {calls}")
                kept = sum(count for count, key in self.samples_by("comm") if key == "syscalls")
                return "{:.2f} %", [100 * (1 - kept / calls)]

            return figures

        self.row("lost of the loop, rings of 512 KB", lost("512K"))
        self.row("lost of the loop, rings of 16 MB", lost("16M"))

    def end(self):
        def seconds(size):
            def figures(tool):
                clear()
                child, _ = begin(f"{tool} record -q -o r.data -a -g -e raw_syscalls:sys_enter")
                load = subprocess.Popen(["./syscalls", "1000000000"])
                while not os.path.exists("r.data") or os.path.getsize("r.data") < size:
                    time.sleep(0.01)
                load.kill()
                load.wait()
                began = time.monotonic()
                child.send_signal(signal.SIGINT)
                return "{:.2f} s", [FinishedRecorder(child, began).wall]

            return figures

        for size in (256 << 20, 1 << 30):
            size = self.scaled(size)
            self.row(f"Ctrl-C to prompt after {size / (1 << 20):g} MB", seconds(size))

    def start(self):
        def figures(tool):
            began = time.monotonic()
            record(tool, "-k mono -a -e cpu-clock -F 9997", "sleep 0.1")
            whole = time.monotonic() - began
            script = [self.rperf, "script", "-i", "r.data", "--ns", "-F", "time"]
            text = subprocess.run(script, capture_output=True, text=True, check=True).stdout
            first = float(text.split(":")[0])
            return "{:.0f} ms, {:.0f} ms", [1000 * (first - began), 1000 * whole]

        sleepers = [subprocess.Popen(["sleep", "1000"]) for _ in range(200)]
        self.row("start to first sample, and all of `record -a sleep 0.1`, 200 processes", figures)
        for sleeper in sleepers:
            sleeper.kill()

    def cpu(self):
        def figures(tool):
            done = record(tool, "-a -g -e cpu-clock -F 9997", "sleep 10")
            count = int(re.search(r"\((\d+) samples\)", done.errors).group(1))
            return "{:.2f} s, {:.2f} s", [done.cpu, 1e6 * done.cpu / count]

        with Load():
            self.row("CPU of `-a -g -F 9997 sleep 10`, and for a million samples", figures)

    def copies(self):
        def stack_copies(options):
            def figures(tool):
                with Load() as load:
                    done = record(tool, f"-e cpu-clock -F 2000 {options} -p {load.pid}", "sleep 5")
                count = int(re.search(r"\((\d+) samples\)", done.errors).group(1))
                return "{:.2f} s, {:.0f} samples, {:.0f} bytes each", [done.cpu, count, os.path.getsize("r.data") / count]

            return figures

        self.row("`--call-graph dwarf`", stack_copies("--call-graph dwarf"))
        live = stack_copies("--call-graph dwarf --unwind live")
        self.row("`--unwind live` (perf has none)", live, self.tools[1:])

    def memory(self):
        def figures_of(count, extra):
            def figures(tool):
                done = record(tool, f"{extra} {SYSCALLS}", f"./syscalls {count}")
                return "{:.0f} MB, {:.2f} s, {:.0f} MB written", [done.memory, done.cpu, os.path.getsize("r.data") / 1e6]

            return figures

        some = self.scaled(1500000)
        for count in (some, 10 * some):
            self.row(f"peak memory, CPU, {count / 1e6:g} million calls", figures_of(count, ""))
        self.row(f"{some / 1e6:g} million calls, `-z`", figures_of(some, "-z"))


class Load:
    """Runs the program of load.cpp in the background."""

    def __enter__(self):
        self.process = subprocess.Popen(["./load", "1000"], stdout=subprocess.DEVNULL)
        return self.process

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("-n", type=int, default=3, help="rounds")
    arguments.add_argument("--scale", type=float, default=1, help="factor for the number of calls and bytes")
    arguments.add_argument("--perf", default="perf")
    arguments.add_argument("rperf")
    arguments.add_argument("rows", nargs="+", choices=["feedback", "lost", "end", "start", "cpu", "copies", "memory"])
    options = arguments.parse_args()
    options.rperf = os.path.abspath(options.rperf)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        subprocess.run(["gcc", "-O2", "-o", "syscalls", f"{HERE}/syscalls.c"], check=True)
        subprocess.run(["g++", "-O2", "-g", "-fno-omit-frame-pointer", "-pthread", "-o", "load", f"{HERE}/load.cpp"], check=True)
        print(f"{time.strftime('%F')}, {os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}\n")
        print("| | perf | rperf |\n| --- | --- | --- |")
        bench = Bench(options)
        for name in options.rows:
            getattr(bench, name)()
        os.chdir("/")


if __name__ == "__main__":
    main()

"""The content of a recording as `rperf report` and `rperf script` show it. Every consumer must show the same."""

import json
import re
import subprocess
from collections import Counter
from pathlib import Path


def run(*words, **options):
    """The output of a program, which must succeed."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise SystemExit(f"{words}: status {done.returncode}\n{done.stderr}")
    return done.stdout


class Sample:
    """A sample: `stack` has the names of its functions, outermost first."""

    def __init__(self, row):
        self.pid, self.tid, self.comm = row["pid"], row["tid"], row["comm"]
        self.time, self.event, self.period = row["time"], row["event"], row["period"]
        frames = row.get("callchain") or [row]
        self.frames = [(short(frame.get("dso", "")), frame.get("symbol")) for frame in reversed(frames)]
        self.stack = [shown(*frame) for frame in self.frames]


def shown(dso, symbol):
    """The name of a function in the files of other tools: that of its object if it is unknown."""
    if symbol:
        return symbol
    return dso if dso.startswith("[") else f"[{dso or 'unknown'}]"


def short(dso):
    """The name of an object as `report` shows it."""
    name = dso if dso.startswith("[") else Path(dso).name
    return re.sub(r"^perf-(\d+)\.map$", r"[JIT] tid \1", name)


class Expected:
    """The samples of a recording, which `report` sums up to the same numbers."""

    def __init__(self, rperf, path, *options):
        self.rperf, self.path, self.options = rperf, path, options
        lines = run(rperf, "script", "-i", path, "--json", *options).splitlines()
        self.has_inlined = any('"inlined":true' in line for line in lines)
        self.samples = [Sample(json.loads(line)) for line in lines]
        self.events = list(dict.fromkeys(sample.event for sample in self.samples))

    def of(self, event):
        """The samples of an event."""
        return [sample for sample in self.samples if sample.event == event]

    def threads(self, event):
        """Sums of periods by process id, thread id and name."""
        return summed(((sample.pid, sample.tid, sample.comm), sample.period) for sample in self.of(event))

    def own(self, event, only=None):
        """Sums of periods by the innermost function, of one thread or of all."""
        return functions(self.of(event), only)[0]

    def total(self, event, only=None):
        """Sums of periods by function, with callees, each once per sample."""
        return functions(self.of(event), only)[1]

    def stacks(self, event):
        """Numbers of samples by the thread's name and the functions of the stack."""
        return Counter((sample.comm, *sample.stack) for sample in self.of(event))

    def processes(self):
        """Names of the processes as `report -s tgid` shows them."""
        rows = self.report("--no-children", "-F", "tgid")
        found = (row.strip().split(":", 1) for [row] in rows)
        return {int(pid): name for pid, name in found}

    def report(self, *words):
        """The rows of `report`, as lists of cells, for recordings of one event."""
        text = run(self.rperf, "report", "-i", self.path, "--stdio", "-g", "none", "-t", "\t", *self.options, *words)
        return [line.split("\t") for line in text.splitlines() if line and not line.startswith("#")]

    def differences(self):
        """Differences between the sums of these samples and `report`."""
        if len(self.events) != 1 or self.has_inlined:
            return []
        [event] = self.events
        samples = self.of(event)
        own, counts, total = Counter(), Counter(), Counter()
        for sample in samples:
            frames = [(dso, name) for dso, name in sample.frames]
            own[self.row(*frames[-1])] += sample.period
            counts[self.row(*frames[-1])] += 1
            for frame in {self.row(*frame) for frame in frames}:
                total[frame] += sample.period
        found = []
        whole = sum(own.values())
        reported = Counter()
        for samples_of, period, dso, symbol in self.report("--no-children", "-F", "sample,period,dso,sym"):
            row = self.cell(dso, symbol)
            reported[row] += int(period)
            counts[row] -= int(samples_of)
        found += differing("report, periods", own, reported)
        found += differing("report, samples", counts, {})
        shares = {}
        for share, dso, symbol in self.report("--children", "-F", "overhead_children,dso,sym"):
            shares.setdefault(self.cell(dso, symbol), []).append(float(share.strip().rstrip("%")))
        for row, period in total.items():
            # Functions of the same name have a row each, and can call each other.
            share, reported_shares = 100 * period / whole, shares.get(row, [0.0])
            if row[1] and not max(reported_shares) - 0.0051 <= share <= sum(reported_shares) + 0.0051 * len(reported_shares):
                found.append(f"report, totals: {row}: {reported_shares} instead of {share}")
        threads = Counter()
        for period, pid, tid, comm in self.report("--no-children", "-F", "period,tgid,tid,comm"):
            number = lambda cell: int(cell.strip().split(":")[0])
            threads[number(pid), number(tid), comm.strip()] += int(period)
        return found + differing("report, threads", self.threads(event), threads)

    @staticmethod
    def row(dso, symbol):
        """The key of a row: rows without symbols are summed up by object."""
        return (dso or "[unknown]", symbol or "")

    @staticmethod
    def cell(dso, symbol):
        """The key of a row that was printed."""
        name = re.sub(r"^\[.\] ", "", symbol.strip())
        return (dso.strip(), "" if re.fullmatch(r"(0x)?[0-9a-f]{16}", name) else name)


def functions(samples, only=None):
    """Sums of periods by function, without and with callees. `only` is a thread: process id, thread id and name."""
    own, total = Counter(), Counter()
    for sample in samples:
        if only not in (None, (sample.pid, sample.tid, sample.comm)):
            continue
        own[sample.stack[-1]] += sample.period
        for name in set(sample.stack):
            total[name] += sample.period
    return own, total


def summed(pairs):
    """Sums by key."""
    sums = Counter()
    for key, number in pairs:
        sums[key] += number
    return sums


def differing(title, expected, found, within=0):
    """The differences between two tables, as lines. Rows of zero are the same as none; differences
    of at most `within` are ignored."""
    lines = []
    for key in expected.keys() | found.keys():
        before, after = expected.get(key, 0), found.get(key, 0)
        if abs(before - after) > within:
            lines.append(f"{title}: {key}: {after} instead of {before}")
    return sorted(lines)

#!/usr/bin/env python3
"""Count the events of a recording by program, with a function called for each event: python3 events.py [perf.data]."""

import collections
import sys

import perf


class Counter:
    """Counts samples and sums their periods."""

    def __init__(self, path):
        self.samples = collections.Counter()
        self.periods = collections.Counter()
        self.records = collections.Counter()
        self.session = perf.session(
            perf.data(path),
            sample=self.sample,
            comm=self.record,
            mmap=self.record,
            task=self.record,
            context_switch=self.record,
        )

    def sample(self, event):
        thread = self.session.find_thread(event.sample_pid, event.sample_tid)
        comm = thread.comm() if thread else f":{event.sample_tid}"
        self.samples[event.evsel.name, comm] += 1
        self.periods[event.evsel.name, comm] += event.sample_period

    def record(self, event):
        self.records[type(event).__name__] += 1


def main():
    counter = Counter(sys.argv[1] if len(sys.argv) > 1 else "perf.data")
    counter.session.process_events()
    for (event, comm), samples in sorted(counter.samples.items()):
        print(f"{event} {comm} {samples} {counter.periods[event, comm]}")
    for name, count in sorted(counter.records.items()):
        print(f"# {name} {count}")


if __name__ == "__main__":
    main()

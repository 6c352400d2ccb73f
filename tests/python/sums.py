"""Prints samples and periods of recordings by event and thread, and checks that tables of several sizes have the same sums."""

import collections
import sys

import perf


def of_events(path):
    sums = collections.defaultdict(lambda: [0, 0])

    def sample(event):
        own = sums[event.evsel.name, event.sample_comm, event.sample_tid]
        own[0] += 1
        own[1] += event.sample_period
        thread = session.find_thread(event.sample_pid, event.sample_tid)
        assert thread is None or thread.comm() == event.sample_comm, (thread, event.sample_comm)

    session = perf.session(perf.data(path, force=True), sample=sample)
    session.process_events()
    return sums


def add(sums, table):
    events, comms = table.categories("event"), table.categories("comm")
    for event, comm, tid, period in zip(table["event"], table["comm"], table["tid"], table["period"]):
        own = sums[events[event], comms[comm], tid]
        own[0] += 1
        own[1] += period


def of_tables(path, rows):
    sums = collections.defaultdict(lambda: [0, 0])
    session = perf.session(perf.data(path, force=True), jobs=2)
    columns = ["event", "comm", "tid", "period"]
    if rows:
        session.process_tables(lambda table: add(sums, table), columns, rows=rows)
    else:
        add(sums, session.table(columns))
    return sums


for path in sys.argv[1:]:
    expected = of_events(path)
    for rows in (0, 1, 1000000):
        assert of_tables(path, rows) == expected, (path, rows)
    print("==", path)
    for (event, comm, tid), (samples, period) in sorted(expected.items()):
        print(f"{event} {comm} {tid} {samples} {period}")

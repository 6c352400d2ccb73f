"""Prints the counts of a recording of stat by event, and checks the times of its intervals."""

import sys

import perf

sums, times = {}, []


def stat(event, name):
    if isinstance(event, perf.stat_round_event):
        assert name is None and event.stat_round_type in (0, 1) and "stat_round" in repr(event)
        times.append(event.time)
    else:
        assert isinstance(event, perf.stat_event) and event.ena >= event.run > 0 and event.cpu >= -1 and event.thread == 0
        sums[name] = sums.get(name, 0) + event.val


perf.session(perf.data(sys.argv[1], force=True), stat=stat).process_events()
assert times == sorted(times) and times
for name, count in sums.items():
    print(name, count)

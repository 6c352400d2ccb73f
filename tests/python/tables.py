"""Columns are buffers that NumPy takes without copying, and their values are those of the events."""

import os
import sys

import numpy

import perf

path = sys.argv[1]
events = []
session = perf.session(perf.data(path), sample=events.append)
session.process_events()
table = session.table(["time", "cpu", "pid", "tid", "period", "ip", "symbol", "dso", "comm", "stack", "event"])
assert len(table) == len(events) > 100, len(events)
view = table["period"]
array = numpy.asarray(view)
assert array.dtype == numpy.uint64 and array.flags.writeable
assert numpy.shares_memory(array, numpy.frombuffer(view, dtype=numpy.uint64))
array[0] += 1
assert view[0] == array[0] == events[0].sample_period + 1
array[0] -= 1
assert numpy.asarray(table["pid"]).dtype == numpy.int32
frame = table.to_pandas()
assert numpy.shares_memory(frame.time.to_numpy(), numpy.asarray(table["time"]))
for column, name in [("time", "sample_time"), ("cpu", "sample_cpu"), ("tid", "sample_tid"), ("period", "sample_period"), ("ip", "sample_ip")]:
    assert list(frame[column]) == [getattr(event, name) for event in events], column
assert list(frame.comm) == [event.sample_comm for event in events]
assert list(frame.symbol) == [event.symbol or "[unknown]" for event in events]
assert list(frame.dso) == [event.dso or "[unknown]" for event in events]
assert list(frame.event) == [event.evsel.name for event in events]
for stack, event in zip(frame["stack"], events):
    names = stack.split(";") if stack else []
    frames = list(reversed(event.callchain))
    assert len(names) == len(frames), (stack, frames)
    for name, own in zip(names, frames):
        assert own.symbol is None or own.symbol == name, (name, own)
assert list(frame.time) == sorted(frame.time)
header = perf.data(path).header
assert header["hostname"] == os.uname().nodename and header["arch"] == os.uname().machine, header
assert header["first_time"] == events[0].sample_time and header["last_time"] == events[-1].sample_time, header
assert header["command_line"][1] == "record" and header["wall_offset"] is None
print(len(table), frame.period.sum(), "good")

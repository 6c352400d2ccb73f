"""Errors are exceptions with clear messages, and exceptions of callbacks end the processing."""

import os
import signal
import struct
import sys

import perf

good, scratch = sys.argv[1], sys.argv[2]


def raises(kind, text, action):
    try:
        action()
    except kind as error:
        assert text in str(error), (text, str(error))
    else:
        raise AssertionError(f"no {kind.__name__}: {text}")


def written(name, content):
    path = os.path.join(scratch, name)
    with open(path, "wb") as file:
        file.write(content)
    return path


raises(FileNotFoundError, "No such file or directory: '/nonexistent/perf.data'", lambda: perf.data("/nonexistent/perf.data"))
raises(ValueError, "zero-sized data", lambda: perf.data(written("empty", b"")))
raises(ValueError, "incompatible file format", lambda: perf.data(written("text", b"no recording\n" * 100)))
raises(TypeError, "", lambda: perf.data(7.5))
raises(TypeError, "", lambda: perf.data(good, 3))
raises(TypeError, "", lambda: perf.session())
raises(TypeError, "", lambda: perf.session("perf.data"))
data = perf.data(good)
raises(TypeError, "perf.session has no keyword 'samples'", lambda: perf.session(data, samples=print))
raises(TypeError, "sample: not a function", lambda: perf.session(data, sample=7))
raises(ValueError, "jobs must be at least 1", lambda: perf.session(data, jobs=0))
session = perf.session(data)
session.process_events()
raises(ValueError, "no column 'nope'\nhint: columns: time,", lambda: session.table(["nope"]))
raises(ValueError, "no event 'nope'\nhint: its events:", lambda: session.table(event="nope"))
raises(ValueError, "rows must be at least 1", lambda: session.process_tables(print, rows=0))
raises(KeyError, "no column 'comm'", lambda: session.table(["time"])["comm"])
assert session.find_thread(2**31 - 1) is None
raises(OverflowError, "", lambda: session.find_thread(2**40))

# An exception of a callback: the caller gets the same object, and no further event is processed.
own = RuntimeError("mine")
calls = []


def fails(event):
    calls.append(event)
    if len(calls) == 3:
        raise own


try:
    perf.session(data, sample=fails).process_events()
except RuntimeError as error:
    assert error is own and len(calls) == 3
else:
    raise AssertionError("no exception")
raises(TypeError, "positional argument", lambda: perf.session(data, sample=lambda: None).process_events())
raises(SystemExit, "7", lambda: perf.session(data, sample=lambda event: sys.exit(7)).process_events())
raises(ZeroDivisionError, "", lambda: session.process_tables(lambda table: 1 // 0))
raises(AttributeError, "no attribute 'nope'", lambda: calls[0].nope)


# Shells start programs in the background with ignored interrupts, and Python leaves these ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)


def interrupts(event):
    os.kill(os.getpid(), signal.SIGINT)


raises(KeyboardInterrupt, "", lambda: perf.session(data, sample=interrupts).process_events())
# A session within a callback of another session.
inner = []
perf.session(data, sample=lambda event: inner or (inner.append(1), perf.session(data).process_events())).process_events()
assert inner

# A truncated recording: the events before the damage arrive, then an exception with its path. It is cut in the middle
# one of its samples.
content = open(good, "rb").read()
# `data` of `struct perf_file_header`: offset and size.
position, size = struct.unpack_from("=QQ", content, 40)
end = position + size
samples = []
while position < end:
    # `struct perf_event_header`: type, misc, size.
    kind, _, length = struct.unpack_from("=IHH", content, position)
    if kind == 9:  # PERF_RECORD_SAMPLE
        samples.append(position)
    position += length
cut = samples[len(samples) // 2] + 8
counts = {}
for name, path in [("whole", good), ("cut", written("cut", content[:cut]))]:
    counts[name] = 0

    def count(event, name=name):
        counts[name] += 1

    try:
        perf.session(perf.data(path), sample=count).process_events()
        assert name == "whole"
    except ValueError as error:
        assert name == "cut" and path in str(error), str(error)
assert 0 < counts["cut"] < counts["whole"], counts

# Live events.
cpus, threads = perf.cpu_map(), perf.thread_map()
raises(ValueError, "neither a number nor a range", lambda: perf.cpu_map("x"))
raises(OSError, "process 2147483646", lambda: perf.thread_map(2147483646))
raises(TypeError, "has no setting 'frequency'", lambda: perf.evsel(frequency=7))
raises(TypeError, "type must be a number", lambda: perf.evsel(type="software"))
raises(TypeError, "", lambda: perf.evlist(1, 2))
raises(IndexError, "", lambda: cpus[10000])
raises(ValueError, "unknown event", lambda: perf.parse_events("nope"))
raises(ValueError, "call open() before mmap()", lambda: perf.evlist(cpus, threads).mmap())
raises(TypeError, "Unknown CPU '0'", lambda: perf.evlist(cpus, threads).read_on_cpu(0))
evsel = perf.evsel(type=1234567)
raises(OSError, "cannot open", lambda: evsel.open(cpus, threads))
raises(ValueError, "is not open on CPU 0", lambda: evsel.read(0, -1))
evlist = perf.evlist(cpus, threads)
assert evlist.add(evsel) == 1
raises(ValueError, "in the list already", lambda: evlist.add(evsel))
raises(IndexError, "", lambda: evlist[1])
print("good")

#!/usr/bin/env python3
"""Print the tasks that start, end and get names, and their mappings, until Ctrl-C: python3 twatch.py [seconds].

It runs with the module of Linux perf, too.
"""

import sys
import time

import perf


def main():
    limit = time.monotonic() + float(sys.argv[1]) if len(sys.argv) > 1 else None
    cpus = perf.cpu_map()
    threads = perf.thread_map(-1)
    evsel = perf.evsel(
        type=perf.TYPE_SOFTWARE,
        config=perf.COUNT_SW_DUMMY,
        task=1,
        comm=1,
        mmap=1,
        freq=0,
        wakeup_events=1,
        watermark=1,
        sample_id_all=1,
        sample_type=perf.SAMPLE_PERIOD | perf.SAMPLE_TID | perf.SAMPLE_CPU,
    )
    evsel.open(cpus=cpus, threads=threads)
    evlist = perf.evlist(cpus, threads)
    evlist.add(evsel)
    evlist.mmap()
    print("watching", flush=True)
    while limit is None or time.monotonic() < limit:
        evlist.poll(timeout=100)
        for cpu in cpus:
            while event := evlist.read_on_cpu(cpu):
                print(f"cpu: {event.sample_cpu}, pid: {event.sample_pid}, tid: {event.sample_tid} {event}", flush=True)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        pass

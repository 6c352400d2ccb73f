"""Prints each sample of a recording in order of time: the time, and address and function of each frame, as script does."""

import sys

import perf


def sample(event):
    assert event.callchain is not None
    print(f"{event.sample_time}")
    for frame in event.callchain:
        print(f"{frame.address:x} {frame.symbol or '[unknown]'}")


perf.session(perf.data(sys.argv[1], force=True), sample=sample).process_events()

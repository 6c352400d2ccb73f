"""Recordings and live events of Linux perf, read by rperf.

It has the types of Linux perf's own module of this name: evlist, evsel, cpu_map, thread_map and the events.
A session reads a recording: process_events() calls a function for each event, and table() returns the samples as
columns that NumPy takes without copying.

    import perf

    session = perf.session(perf.data("perf.data"))
    frame = session.table(["comm", "symbol", "period"]).to_pandas()
    print(frame.groupby("symbol", observed=True).period.sum().nlargest(10))
"""

from . import _perf
from ._perf import *  # noqa: F401,F403

__all__ = [name for name in dir(_perf) if not name.startswith("_")]

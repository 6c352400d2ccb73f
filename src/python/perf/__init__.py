"""Recordings and live events of Linux perf, read by rperf.

Programs for Linux perf's own module of this name run unchanged: evlist, evsel, cpu_map, thread_map and the events.
Recordings are read with session: its functions are called for each event, and table() returns the samples as columns
that NumPy and pandas take without copying.

    import perf

    session = perf.session(perf.data("perf.data"))
    frame = session.table(["comm", "symbol", "period"]).to_pandas()
    print(frame.groupby("symbol", observed=True).period.sum().nlargest(10))
"""

from . import _perf
from ._perf import *  # noqa: F401,F403

__all__ = [name for name in dir(_perf) if not name.startswith("_")]

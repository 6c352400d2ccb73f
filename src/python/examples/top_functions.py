#!/usr/bin/env python3
"""Print the functions with the largest periods, by event: python3 top_functions.py [-i perf.data] [-n 20]."""

import argparse

import perf


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-i", "--input", default="perf.data", help="the recording")
    parser.add_argument("-n", "--number", type=int, default=20, help="rows of each event")
    arguments = parser.parse_args()
    session = perf.session(perf.data(arguments.input))
    frame = session.table(["event", "comm", "dso", "symbol", "period"]).to_pandas()
    for event, samples in frame.groupby("event", observed=True):
        rows = samples.groupby(["comm", "dso", "symbol"], observed=True).period.agg(["sum", "count"])
        rows = rows.sort_values("sum", ascending=False, kind="stable")
        share = 100 * rows["sum"] / max(samples.period.sum(), 1)
        rows.insert(0, "percent", share.round(2))
        print(f"# {event}: {len(samples)} samples, {samples.period.sum()} in total")
        print(rows.head(arguments.number).to_string())


if __name__ == "__main__":
    main()

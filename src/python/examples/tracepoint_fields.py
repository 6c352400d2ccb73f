#!/usr/bin/env python3
"""Describe a field of a tracepoint by program: python3 tracepoint_fields.py sched:sched_stat_runtime runtime."""

import argparse

import perf


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-i", "--input", default="perf.data", help="the recording")
    parser.add_argument("event", help="the tracepoint, as in sched:sched_stat_runtime")
    parser.add_argument("field", help="the field")
    arguments = parser.parse_args()
    session = perf.session(perf.data(arguments.input))
    table = session.table(["comm", arguments.field], event=arguments.event)
    frame = table.to_pandas()
    if table.categories(arguments.field) is not None:
        print(frame.groupby("comm", observed=True)[arguments.field].value_counts().to_string())
        return
    values = frame.groupby("comm", observed=True)[arguments.field]
    rows = values.agg(["count", "sum", "min", "median", "max"])
    print(rows.sort_values("sum", ascending=False, kind="stable").to_string())


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Compare the functions of two recordings: python3 compare.py before.data after.data."""

import argparse

import pandas

import perf


def shares(path):
    """The share of each function in the periods of a recording, in percent."""
    frame = perf.session(perf.data(path)).table(["symbol", "period"]).to_pandas()
    periods = frame.groupby("symbol", observed=True).period.sum()
    return 100 * periods / max(periods.sum(), 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("before", help="the first recording")
    parser.add_argument("after", help="the second recording")
    parser.add_argument("-n", "--number", type=int, default=20, help="rows")
    arguments = parser.parse_args()
    before, after = shares(arguments.before), shares(arguments.after)
    both = pandas.DataFrame({"before": before.astype(float), "after": after.astype(float)}).fillna(0)
    both.index = both.index.astype(str)
    both["change"] = both.after - both.before
    order = both.change.abs().sort_values(ascending=False, kind="stable").index
    print(both.loc[order].head(arguments.number).round(2).to_string())


if __name__ == "__main__":
    main()

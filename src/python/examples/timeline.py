#!/usr/bin/env python3
"""Draw the samples of each program over time: python3 timeline.py [-i perf.data] [-o timeline.svg]."""

import argparse

import matplotlib
import pandas

import perf

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-i", "--input", default="perf.data", help="the recording")
    parser.add_argument("-o", "--output", default="timeline.svg", help="the picture, SVG or PNG")
    parser.add_argument("-b", "--bins", type=int, default=100, help="steps of time")
    arguments = parser.parse_args()
    frame = perf.session(perf.data(arguments.input)).table(["time", "comm"]).to_pandas()
    if frame.empty:
        raise SystemExit(f"{arguments.input} has no samples")
    seconds = (frame.time - frame.time.min()) / 1e9
    # The most frequent programs; the others are drawn as one.
    top = frame.comm.value_counts().head(8).index
    comm = frame.comm.astype(object).where(frame.comm.isin(top), "others")
    step = max(seconds.max() / arguments.bins, 1e-9)
    counts = pandas.crosstab((seconds // step) * step, comm)
    axes = counts.plot.area(linewidth=0, figsize=(10, 4))
    axes.set_xlabel("seconds")
    axes.set_ylabel(f"samples in {step * 1000:.3g} ms")
    pyplot.tight_layout()
    pyplot.savefig(arguments.output)
    print(f"{int(counts.to_numpy().sum())} samples drawn in {arguments.output}")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Print call stacks as folded text, the input of flame graphs: python3 stacks.py [-i perf.data] | rperf flamegraph -i -."""

import argparse

import perf


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-i", "--input", default="perf.data", help="the recording, with call stacks (record -g)")
    parser.add_argument("-e", "--event", help="the only event")
    parser.add_argument("-c", "--comm", help="the only program")
    arguments = parser.parse_args()
    session = perf.session(perf.data(arguments.input))
    frame = session.table(["comm", "stack", "period"], event=arguments.event).to_pandas()
    if arguments.comm:
        frame = frame[frame.comm == arguments.comm]
    weights = frame.groupby(["comm", "stack"], observed=True).period.sum()
    for (comm, stack), weight in weights.items():
        print(f"{comm};{stack} {weight}" if stack else f"{comm} {weight}")


if __name__ == "__main__":
    main()

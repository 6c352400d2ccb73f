#!/bin/sh
# Runs the given number of damaged and malicious inputs through a release build, two at a time, and prints the findings:
# `sh tests/hostile.sh [COUNT] [SEED]`. The first findings of each kind are kept in target/tmp/hostile/found, each with the
# command that repeats it.
set -eu
cd "$(dirname "$0")/.."
RPERF_HOSTILE=${1:-50000} RPERF_HOSTILE_SEED=${2:-1} exec \
    cargo test --release --quiet --test hostile hostile_input -- --nocapture

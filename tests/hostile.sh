#!/bin/sh
# Sends so many damaged and malicious inputs through a release build, two at a time, and says what went wrong:
# `sh tests/hostile.sh [COUNT] [SEED]`. What is found is kept in target/tmp/hostile/found with the line that runs it again.
set -eu
cd "$(dirname "$0")/.."
RPERF_HOSTILE=${1:-50000} RPERF_HOSTILE_SEED=${2:-1} exec \
    cargo test --release --quiet --test hostile hostile_input -- --nocapture

#!/bin/sh
# Records the files that docs/performance.md speaks of and measures perf and rperf side by side.
# usage: tests/bench/run.sh [FOLDER]   (root; needs linux-perf, g++, python3; about five minutes)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
folder=${1:-target/bench}
seconds=${SECONDS_TO_RECORD:-40}
mkdir -p "$folder"
cargo build --release --quiet
rperf=$(pwd)/${CARGO_TARGET_DIR:-target}/release/rperf
case ${CARGO_TARGET_DIR:-} in /*) rperf=$CARGO_TARGET_DIR/release/rperf ;; esac
cd "$folder"

g++ -O2 -g -fno-omit-frame-pointer -pthread "$here/load.cpp" -o load
if [ ! -e fp.data ]; then
    limit=$(cat /proc/sys/kernel/perf_event_max_sample_rate)
    echo 100000 >/proc/sys/kernel/perf_event_max_sample_rate
    perf record -q -F 25000 -g -a -m 4096 -o fp.data -- ./load "$seconds" 2>/dev/null
    echo "$limit" >/proc/sys/kernel/perf_event_max_sample_rate
fi
ls -l fp.data

compare() { echo "--- $1"; python3 "$here/compare.py" -n "${ROUNDS:-3}" perf "perf $2" rperf "$rperf $2"; }
compare "report, children" "report --stdio -i fp.data"
compare "report, no children, flat" "report --stdio --no-children -g none -i fp.data"
compare "script" "script --no-inline -i fp.data"
compare "start-up: --version" "--version"
compare "record true" "record -q -o r.data true"
compare "record -ag -F 9997, 5 s" "record -q -ag -F 9997 -o r.data sleep 5"

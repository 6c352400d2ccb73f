#!/bin/sh
# Compares the CPU time of two binaries, and fails if the new one is more than 5 % slower on a row.
# usage: tests/bench/gate.sh OLD NEW [FOLDER]   (root for the first run, which records the files: fp tp dwarf)
# Run it before a change of the engine is proposed: OLD is a release build of main, NEW one of the change.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
[ $# -ge 2 ] || { echo "usage: $0 OLD NEW [FOLDER]" >&2; exit 2; }
old=$(realpath "$1") new=$(realpath "$2") folder=${3:-target/gate}
mkdir -p "$folder"
cd "$folder"
if [ ! -e fp.data ] || [ ! -e tp.data ] || [ ! -e dwarf.data ]; then
    . "$here/files.sh"
    build_workloads
    rate=$(cat /proc/sys/kernel/perf_event_max_sample_rate)
    trap 'echo "$rate" >/proc/sys/kernel/perf_event_max_sample_rate' EXIT
    echo 100000 >/proc/sys/kernel/perf_event_max_sample_rate
    SECONDS_TO_RECORD=12 need fp
    CALLS_TO_RECORD=1500000 need tp
    need dwarf
fi
python3 "$here/gate.py" "$old" "$new"

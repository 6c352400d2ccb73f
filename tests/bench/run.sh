#!/bin/sh
# Records the files that docs/performance.md speaks of, measures perf and rperf in turns, and prints its table.
# usage: tests/bench/run.sh [FOLDER]   (root; needs linux-perf, g++, python3, 5 GB; about ten minutes)
# Files that are in FOLDER already are kept. RPERF names a binary to measure instead of building one, ROUNDS how often,
# DWARF=1 adds the recording with copied stacks, over which perf takes minutes.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
folder=${1:-target/bench}
seconds=${SECONDS_TO_RECORD:-40}
mkdir -p "$folder"
if [ -z "${RPERF:-}" ]; then
    cargo build --release --quiet
    RPERF=$(pwd)/${CARGO_TARGET_DIR:-target}/release/rperf
    case ${CARGO_TARGET_DIR:-} in /*) RPERF=$CARGO_TARGET_DIR/release/rperf ;; esac
fi
rperf=$RPERF
cd "$folder"

g++ -O2 -g -fno-omit-frame-pointer -pthread "$here/load.cpp" -o load
g++ -O2 "$here/limit.cpp" -o limit
gcc -O2 "$here/syscalls.c" -o syscalls
if [ ! -e fp.data ]; then
    limit=$(cat /proc/sys/kernel/perf_event_max_sample_rate)
    echo 100000 >/proc/sys/kernel/perf_event_max_sample_rate
    perf record -q -F 25000 -g -a -m 4096 -o fp.data -- ./load "$seconds" 2>/dev/null
    echo "$limit" >/proc/sys/kernel/perf_event_max_sample_rate
fi
if [ ! -e tp.data ]; then
    calls=${CALLS_TO_RECORD:-6500000}
    perf record -q -e raw_syscalls:sys_enter -a -m 4096 -o tp.data -- \
        sh -c "./syscalls $calls & ./syscalls $calls; wait" 2>/dev/null
fi
if [ -n "${DWARF:-}" ] && [ ! -e dwarf.data ]; then
    perf record -q -F 2000 --call-graph dwarf -o dwarf.data -- ./load 15 2>/dev/null
fi

walk() { ./limit "$1" | cut -d' ' -f2; }
row() {
    file=${3:-fp.data}
    python3 "$here/compare.py" -n "${ROUNDS:-3}" --row "$1" --limit "$(walk "$file")" \
        perf "perf $2 -i $file" rperf "$rperf $2 -i $file"
}
for file in fp.data tp.data; do
    echo "$file: $(stat -Lc %s $file) bytes; summed, walked (s), records: $(./limit $file | cut -d' ' -f1-3)"
done
echo
echo "| job | perf: CPU, wall, anonymous | rperf | CPU, times less | wall, times the walk over headers |"
echo "| --- | --- | --- | --- | --- |"
row "\`report --stdio\`, fp" "report --stdio --no-inline"
row "\`report --no-children -g none\`, fp" "report --stdio --no-children -g none"
row "\`script --no-inline\`, fp" "script --no-inline"
row "\`report --no-children\`, tracepoint" "report --stdio --no-children" tp.data
row "\`script\`, tracepoint" "script" tp.data
if [ -e dwarf.data ]; then
    row "\`script\`, dwarf" "script" dwarf.data
    row "\`report -s srcline\`, dwarf" "report --stdio -s srcline" dwarf.data
fi
echo
compare() { echo "--- $1"; python3 "$here/compare.py" -n "${ROUNDS:-3}" perf "perf $2" rperf "$rperf $2"; }
compare "start-up: --version" "--version"
compare "record true" "record -q -o r.data true"
compare "record -ag -F 9997, 5 s" "record -q -ag -F 9997 -o r.data sleep 5"
rm -f r.data r.data.old

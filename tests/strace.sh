#!/bin/sh
# Compares the lines of 'rperf trace' with those of strace on a program that calls many system calls with known arguments: names, results and
# arguments. Needs gcc, python3, strace and root. Lists all differences with their reasons; status 1 if one has none.
#
#   sh tests/strace.sh [RPERF]       (default: target/debug/rperf)
set -eu
cd "$(dirname "$0")/.."
rperf=$(realpath "${1:-target/debug/rperf}")
tests=$(realpath tests)
calls=$(realpath src/syscalls/calls.txt)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
gcc -O1 -o program "$tests/strace/calls.c"
strace -s 32 -o strace.lines ./program
"$rperf" trace -o rperf.lines ./program
python3 "$tests/strace/compare.py" strace.lines rperf.lines "$calls"

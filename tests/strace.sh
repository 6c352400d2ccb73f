#!/bin/sh
# Compares the lines of 'rperf trace' with those of strace on a program that calls all system calls of x86-64 with known
# arguments: names, results and arguments. Needs gcc, python3, strace and root. Lists all differences with their reasons, and
# calls that are not made; the status is 1 if a difference has no reason, an expected
# difference is gone, or a call is missing.
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
gcc -O1 -o program "$tests"/strace/*.c
# Runs a command that must end with this status.
ends_with() {
	expected=$1
	shift
	status=0
	"$@" || status=$?
	[ "$status" -eq "$expected" ]
}
ends_with 8 strace -s 32 -o strace.lines ./program
ends_with 8 "$rperf" trace --no-inherit -o rperf.lines ./program
ends_with 7 strace -o strace.exit ./program exit
ends_with 7 "$rperf" trace --no-inherit -o rperf.exit ./program exit
for tool in strace rperf; do
	grep -E "(^| )exit\\(" "$tool.exit" >>"$tool.lines"
done
python3 "$tests/strace/compare.py" strace.lines rperf.lines "$calls"

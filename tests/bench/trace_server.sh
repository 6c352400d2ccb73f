#!/bin/sh
# A redis server under tracers: CPU time of server and tracer per request, and requests per second, as medians of
# alternating runs. The rate is only meaningful if nothing else runs.
#
#   sh tests/bench/trace_server.sh RPERF [RUNS [REQUESTS]]     (default: 5 runs of 100,000 requests)
#
# Needs redis-server, redis-cli and redis-benchmark, or a folder with them in REDIS; perf and strace, if they are to be compared; root.
set -eu
rperf=$(realpath "$1")
runs=${2:-5}
requests=${3:-100000}
redis=${REDIS:-/usr/bin}
port=7391
scratch=$(mktemp -d)
server=
tracer=
trap 'kill $tracer $server 2>/dev/null || true; rm -rf "$scratch"' EXIT
cd "$scratch"

"$redis/redis-server" --port $port --bind 127.0.0.1 --save '' --appendonly no >server.log 2>&1 &
server=$!
until "$redis/redis-cli" -p $port ping >/dev/null 2>&1; do
	sleep 0.2
	kill -0 $server
done

# The CPU time of a process, in microseconds.
cpu() {
	awk '{ print ($14 + $15) * 10000 }' "/proc/$1/stat"
}

# One run: requests per second of GET with 50 connections, while a tracer is attached.
run() {
	name=$1
	shift
	tracer=
	if [ $# -gt 0 ]; then
		"$@" >tracer.out 2>tracer.log &
		tracer=$!
		sleep 2
		kill -0 $tracer
	fi
	server_begin=$(cpu $server)
	tracer_begin=$([ -z "$tracer" ] && echo 0 || cpu $tracer)
	rate=$("$redis/redis-benchmark" -p $port -n "$requests" -c 50 -t get --csv 2>/dev/null | awk -F'"' '/GET/ { print $4 }')
	server_end=$(cpu $server)
	tracer_end=$([ -z "$tracer" ] && echo 0 || cpu $tracer)
	echo "$name $rate $server_begin $server_end $tracer_begin $tracer_end $requests" |
		awk '{ n = NF; name = $1; for (i = 2; i < n - 5; i++) name = name " " $i
			printf "%s\t%s\t%.2f\t%.2f\n", name, $(n - 5), ($(n - 3) - $(n - 4)) / $n, ($(n - 1) - $(n - 2)) / $n }' >>results
	if [ -n "$tracer" ]; then
		kill -INT $tracer
		wait $tracer || true
		lost=$(sed -n 's/.*lost \([0-9]*\) events.*/\1/p' tracer.log | tail -1)
		[ -z "$lost" ] || printf '%s\t%s\n' "$name" "$lost" >>lost
		tracer=
	fi
}

perf=$(command -v perf || true)
strace=$(command -v strace || true)
for _ in $(seq "$runs"); do
	run 'bare'
	run 'rperf trace -s' "$rperf" trace -s -p $server
	run 'rperf trace' "$rperf" trace -o /dev/null -p $server
	run 'rperf trace -e openat,connect' "$rperf" trace -o /dev/null -e openat,connect -p $server
	if [ -n "$perf" ]; then
		run 'perf trace -s' "$perf" trace -s -p $server
		run 'perf trace' "$perf" trace -o /dev/null -p $server
		run 'perf trace -e openat,connect' "$perf" trace -o /dev/null -e openat,connect -p $server
	fi
	if [ -n "$strace" ]; then
		run 'strace -c' "$strace" -f -c -p $server
		run 'strace' "$strace" -f -o /dev/null -p $server
		run 'strace -e openat,connect' "$strace" -f -o /dev/null -e openat,connect -p $server
	fi
done

# The median of each column, in the order of the first run.
cut -f1 results | awk '!seen[$0]++' | while read -r name; do
	for column in 2 3 4; do
		awk -F'\t' -v name="$name" -v column=$column '$1 == name { print $column }' results | sort -n | awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] }'
	done | paste - - - | awk -v name="$name" '{ printf "%-30s %8.2f us server %8.2f us tracer %10.0f requests/s\n", name, $2, $3, $1 }'
done
[ ! -f lost ] || { echo 'lost records:'; cat lost; }

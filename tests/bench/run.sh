#!/bin/sh
# Records the files used in docs/performance.md, measures perf and rperf alternately, and prints the tables.
# usage: tests/bench/run.sh [FOLDER [PART...]]   (root; needs linux-perf, gcc, g++, rustc, python3; 12 GB if all parts run)
# Parts: fp tp dwarf hard distinct zstd pipe tenfold text pictures exports record start; all of them if none is given.
# The additional part probe needs VMLINUX, a kernel image with debug information (linux-image-*-dbg), and has rows for
# SOURCES (linux-source-*, unpacked), CPP (libceph-common.so.2 of librados2, merged with its debug information by
# eu-unstrip and decompressed by objcopy --decompress-debug-sections) and RUST (rperf itself, unoptimised), if given.
# The additional part scripts runs the scripts in tests/bench/scripts.
# pictures installs inferno into FOLDER/inferno for comparison.
# Existing files in FOLDER are kept, and so are perf's results (FOLDER/perf.json: delete it to measure perf again).
# PERF is the perf to measure (default: the installed one), PERF_OPTIONS the options that it needs to find objects
# (--symfs DIR if it runs in another root directory). RPERF is the binary to measure (default: one that is built first),
# ROUNDS the number of measurements; STOP and MEMORY limit each command, in seconds and GB (180, 21).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
folder=${1:-target/bench}
[ $# -eq 0 ] || shift
parts=${*:-fp tp dwarf hard distinct zstd pipe tenfold text pictures exports record start}
mkdir -p "$folder"
if [ -z "${RPERF:-}" ]; then
    cargo build --profile dist --quiet
    RPERF=$(pwd)/${CARGO_TARGET_DIR:-target}/dist/rperf
    case ${CARGO_TARGET_DIR:-} in /*) RPERF=$CARGO_TARGET_DIR/dist/rperf ;; esac
fi
rperf=$RPERF
cd "$folder"
. "$here/files.sh"
[ -x repeat ] || build_workloads
rate=$(cat /proc/sys/kernel/perf_event_max_sample_rate)
trap 'echo "$rate" >/proc/sys/kernel/perf_event_max_sample_rate; rm -f r.data r.data.old text copy' EXIT
echo 100000 >/proc/sys/kernel/perf_event_max_sample_rate

perf=${PERF:-perf} perf_options=${PERF_OPTIONS:-}

compare() { python3 "$here/compare.py" -n "${ROUNDS:-3}" --stop "${STOP:-180}" --memory "${MEMORY:-21}" "$@"; }

# row FILE JOB ARGUMENTS [ARGUMENTS OF RPERF ONLY]: a row comparing perf and rperf on FILE.data, with walking the record
# headers as the lower bound.
row() {
    need "$1"
    compare --kept perf.json --row "$2, $1" --limit "$(./limit "$1.data" | cut -d' ' -f2)" \
        perf "$perf $3 $perf_options -i $1.data" rperf "$rperf $3 ${4:-} -i $1.data"
}

# own FILE JOB ARGUMENTS [WHY]: a row of rperf alone, and why: by default the job is one that perf 6.1 cannot do.
own() {
    need "$1"
    compare --row "$2, $1 (${4:-perf has none})" rperf "$rperf $3 -i $1.data"
}

# piped JOB ARGUMENTS: like row, with the file on standard input and without a lower bound.
piped() { compare --kept perf.json --row "$1, pipe" perf "$perf $2 $perf_options -i - <pipe.data" rperf "$rperf $2 -i - <pipe.data"; }

report="report --stdio --no-inline"
flat="report --stdio --no-children -g none"
callchain_rows() {
    row "$1" "\`report --stdio --no-inline\`" "$report"
    row "$1" "\`report --no-children -g none\`" "$flat"
    row "$1" "\`script --no-inline\`" "script --no-inline"
}
tracepoint_rows() {
    row "$1" "\`report --no-children\`" "report --stdio --no-children"
    row "$1" "\`script\`" "script"
}
stack_copy_rows() {
    row "$1" "\`script\` with inlines" "script"
    row "$1" "\`report -s srcline\`" "report --stdio -s srcline"
}

# text NAME ARGUMENTS: into a file and through a pipe, compared with cat of the same text.
text() {
    $rperf $2 2>/dev/null >text
    compare --walls --row "$1, into a file" "cat" "cat text >copy" rperf "$rperf $2 >copy"
    compare --walls --row "$1, into a pipe" "cat" "sh -c 'cat text | cat'" rperf "sh -c '$rperf $2 | cat'"
    rm -f text copy
}

recorded() {
    compare --row "$1" perf "perf record -q $2 -o r.data sleep 5" rperf "$rperf record -q $2 -o r.data sleep 5"
    for each in perf "$rperf"; do
        "$each" record -q $2 -o r.data sleep 5 >/dev/null 2>&1
        echo "  lost by ${each##*/}: $(perf report --stats -i r.data 2>/dev/null | awk '/LOST/ { found += $3 } END { print found + 0 }') LOST records"
    done
}

# A flame graph of perf script by inferno, compared with rperf flamegraph.
pictures() {
    need fp
    [ -x inferno/bin/inferno-flamegraph ] || cargo install --quiet --root inferno inferno
    tools=inferno/bin/inferno
    text="$perf script --no-inline $perf_options -i fp.data"
    compare --kept perf.json --row "flame graph, fp" \
        perf "$text | $tools-collapse-perf | $tools-flamegraph" rperf "$rperf flamegraph -o /dev/null -i fp.data"
}

# probed OPTIONS ARGUMENTS...: a row for each of the arguments.
probed() {
    options=$1
    shift
    for words; do
        compare --row "\`$words\`" perf "perf probe $options $words" rperf "$rperf probe $options $words"
    done
}

measure() {
    case $1 in
    fp) callchain_rows fp; own fp "\`report --inline\`" "report --stdio --inline" ;;
    hard | distinct | zstd) callchain_rows "$1" ;;
    tp) tracepoint_rows tp ;;
    dwarf) stack_copy_rows dwarf; stack_copy_rows dwarf-rust ;;
    pipe)
        need pipe
        piped "\`report --stdio --no-inline\`" "$report"
        piped "\`script --no-inline\`" "script --no-inline"
        ;;
    tenfold)
        callchain_rows fp-10
        callchain_rows distinct-10
        tracepoint_rows tp-short
        tracepoint_rows tp-short-10
        stack_copy_rows dwarf-10
        ;;
    text)
        need fp; need dwarf
        text "\`script --no-inline\`, fp" "script --no-inline -i fp.data"
        text "\`script\`, dwarf" "script -i dwarf.data"
        ;;
    pictures) pictures ;;
    exports)
        own fp "\`data convert --to-json\`" "data convert -f --to-json /dev/null" "perf was not measured"
        for format in firefox pprof perfetto speedscope folded; do
            own fp "\`data convert --to-$format\`" "data convert -f --to-$format /dev/null"
        done
        ;;
    record)
        ./load 200 &
        load=$!
        for hertz in 99 997 9997; do recorded "\`record -ag -F $hertz sleep 5\`" "-a -g -F $hertz"; done
        kill "$load"
        ;;
    scripts)
        row fp "\`script -s\`, empty handler, Python" "script -s $here/scripts/empty.py"
        row tp-short "\`script -s\`, three fields, Python" "script -s $here/scripts/three_fields.py"
        row tp-short "\`script -s\`, three fields, Perl" "script -s $here/scripts/three_fields.pl"
        ;;
    probe)
        probed "-k $VMLINUX" "-D tcp_sendmsg" "-D kfree" "-D 'tcp_sen*'" "-D tcp_sendmsg:5" "-D fs/read_write.c:467" \
            "-V vfs_read" "-F 'tcp_*'"
        [ -z "${SOURCES:-}" ] || probed "-k $VMLINUX -s $SOURCES" "-L tcp_sendmsg"
        [ -z "${CPP:-}" ] || probed "-x $CPP" "-D decode --max-probes 4000" "-D 'handle_osd_*'" "-D MOSDOp.h:200" "-V handle_osd_map" "-F 'Objecter::*'"
        [ -z "${RUST:-}" ] || probed "-x $RUST" "-D in_debug_info" "-D 'in_deb*'" "-L in_debug_info" "-F 'in_*'"
        ;;
    start)
        compare --row "\`--version\`" perf "perf --version" rperf "$rperf --version"
        compare --row "\`record true\`" perf "perf record -q -o r.data true" rperf "$rperf record -q -o r.data true"
        ;;
    *) echo "no such part: $1" >&2; exit 2 ;;
    esac
}

echo "$(date -u +%F), $(nproc) cores, load average $(cut -d' ' -f1 /proc/loadavg), $($perf --version)"
echo
for part in $parts; do
    case $part in
    text) echo "| $part | cat of the same text, wall | rperf, wall | times |" ;;
    *) echo "| $part | perf: CPU, wall, anonymous | rperf | CPU, times less | wall, times the walk over headers |" ;;
    esac
    case $part in text) echo "| --- | --- | --- | --- |" ;; *) echo "| --- | --- | --- | --- | --- |" ;; esac
    measure "$part"
    echo
done
for file in *.data; do
    case $file in pipe.data | zstd.data | r.data) continue ;; esac
    echo "$file: $(stat -Lc %s "$file") bytes; summed, walked (s), records: $(./limit "$file" | cut -d' ' -f1-3)"
done

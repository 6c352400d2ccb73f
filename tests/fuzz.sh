#!/bin/sh
# Runs every fuzz target for some seconds, two at a time: `sh tests/fuzz.sh [SECONDS] [TARGET...]`; 0 only builds them.
# The initial corpus consists of the small recordings of tests/fixtures, tracepoint formats of the running kernel, rperf's own
# event tables, small programs that are compiled here, and tests/fuzz/seeds; findings are kept in target/fuzz/found.
# FUZZ_SEED is the seed of the random numbers; by default each run has another one.
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-60}
[ $# -eq 0 ] || shift
targets="header captured record sample feature format tables recording shown object dwarf frames probes btf listings names texts insn trace_dat script_text"
targets=${*:-$targets}

mkdir -p "${CARGO_TARGET_DIR:-target}/fuzz"
folder=$(cd "${CARGO_TARGET_DIR:-target}/fuzz" && pwd)

echo "building the targets" >&2
RUSTC_WRAPPER=$PWD/tests/fuzz/rustc.sh CARGO_TARGET_DIR=$folder cargo build --quiet --release \
    --manifest-path tests/fuzz/Cargo.toml
[ "$seconds" != 0 ] || exit 0

# Seeds: files that a target takes unchanged.
recordings=$folder/seeds/recordings
descriptions=$folder/seeds/descriptions
tables=$folder/seeds/tables
listings=$folder/seeds/listings
objects=$folder/seeds/objects
parts=$folder/seeds/parts
types=$folder/seeds/types
traces=$folder/seeds/traces
mkdir -p "$recordings" "$descriptions" "$tables" "$listings" "$objects" "$parts" "$types" "$traces" "$folder/found"
for file in $(find tests/fixtures -name '*.data' -type f -size -40k); do
    cp "$file" "$recordings/$(echo "$file" | tr / _)"
done
cp tests/fixtures/x86_64/trace-cmd.dat "$traces"
for file in /sys/kernel/tracing/events/sched/*/format /sys/kernel/tracing/events/irq/*/format \
    /sys/kernel/tracing/events/lock/*/format /sys/kernel/tracing/events/workqueue/*/format \
    /sys/kernel/tracing/events/raw_syscalls/*/format /sys/kernel/tracing/events/block/*/format; do
    [ ! -r "$file" ] || cp "$file" "$descriptions/$(echo "$file" | tr / _)"
done
for file in src/events/tables/*/*/*.json; do
    cp "$file" "$tables/$(echo "$file" | tr / _)"
done
for lines in names texts; do
    mkdir -p "$folder/seeds/$lines"
    split -l 1 "tests/fuzz/seeds/$lines.txt" "$folder/seeds/$lines/"
done
# Small programs with several kinds of debug information, and BTF types like the kernel's; as far as the compiler
# supports them.
definitions=$(printf '%s\n' 'work* it->name[2] it->more kind $vars' walk+4 leaf%return program.cpp:31)
program() {
    name=$1
    shift
    c++ "$@" -ffreestanding -nostdlib -fno-exceptions -Wl,--build-id "-ffile-prefix-map=$PWD=." -o "$objects/$name" tests/fuzz/seeds/program.cpp \
        2>"$folder/seeds.log" || return 0
    split=$objects/$name-program.dwo
    [ -e "$split" ] || split=/dev/null
    SEED=$parts/$name SPLIT=$split DEFINITIONS=$definitions DUMP=$listings/dump \
        "$folder/release/seeds" "$objects/$name" 2>"$folder/seeds.log" || cat "$folder/seeds.log" >&2
}
program plain -g -O1 -static
program old -gdwarf-4 -O2 -fdebug-types-section -static -fno-asynchronous-unwind-tables
program split -g -gsplit-dwarf -O2 -static
program shared -gdwarf-2 -O2 -fPIC -shared -gno-as-loc-support
program packed -g -gz -O2 -fno-omit-frame-pointer -static
program narrow -m32 -g -O1 -static
program module -g -O2 -r
if cc -c -gbtf -O1 -o "$objects/types.o" tests/fuzz/seeds/types.c 2>"$folder/seeds.log"; then
    objcopy -O binary --only-section=.BTF --set-section-flags .BTF=alloc "$objects/types.o" "$types/types"
fi

run() {
    case $1 in
        record | script_text) seeds=tests/fuzz/seeds/$1 ;;
        captured | sample | insn) seeds="" ;;
        format) seeds=$descriptions ;;
        btf) seeds=$types ;;
        trace_dat) seeds=$traces ;;
        dwarf | frames | probes) seeds=$parts ;;
        listings | names | tables | texts) seeds=$folder/seeds/$1 ;;
        object) seeds=$objects ;;
        *) seeds=$recordings ;;
    esac
    mkdir -p "$folder/corpus/$1"
    # shellcheck disable=SC2086 # none or one word
    if "$folder/release/$1" "$folder/corpus/$1" $seeds ${FUZZ_SEED:+-seed=$FUZZ_SEED} -max_total_time="$seconds" -timeout=20 \
        -rss_limit_mb=1024 -max_len=40000 -artifact_prefix="$folder/found/$1-" -print_final_stats=1 >"$folder/$1.log" 2>&1; then
        echo "$1: $(sed -n 's/^stat::number_of_executed_units: *//p' "$folder/$1.log") inputs" >&2
    else
        tail -n 40 "$folder/$1.log" >&2
        echo "error: the fuzz target $1 found something" >&2
        return 1
    fi
}

# Two at a time; each pair is waited for.
failed=0
# shellcheck disable=SC2086 # a list of words
set -- $targets
while [ $# -gt 0 ]; do
    run "$1" &
    first=$!
    shift
    second=""
    if [ $# -gt 0 ]; then
        run "$1" &
        second=$!
        shift
    fi
    wait "$first" || failed=1
    [ -z "$second" ] || wait "$second" || failed=1
done
exit "$failed"

#!/bin/sh
# Runs every fuzz target for so many seconds, two at a time: `sh tests/fuzz.sh [SECONDS] [TARGET...]`; 0 only builds
# them. The first corpus are the recordings of tests/fixtures, records that these don't have (src/wire/fuzz/seeds), the
# running kernel's descriptions of tracepoints, and the program's own tables of events; what is found stays in
# target/fuzz/found. A stable compiler does: its coverage counters are a pass of LLVM.
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-60}
[ $# -eq 0 ] || shift
targets=${*:-header record sample feature format tables recording}

machine=$(rustc -vV | sed -n 's/^host: //p')
mkdir -p "${CARGO_TARGET_DIR:-target}/fuzz"
folder=$(cd "${CARGO_TARGET_DIR:-target}/fuzz" && pwd)
flags="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cdebug-assertions -Coverflow-checks --cfg fuzzing"
for feature in inline-8bit-counters pc-table trace-compares; do
    flags="$flags -Cllvm-args=-sanitizer-coverage-$feature"
done

for crate in wire perfdata events replay; do
    echo "building the targets of $crate" >&2
    RUSTFLAGS=$flags CARGO_TARGET_DIR=$folder cargo build --quiet --release --target "$machine" \
        --manifest-path "src/$crate/fuzz/Cargo.toml"
done
[ "$seconds" != 0 ] || exit 0

# Seeds: what a target takes as it is.
recordings=$folder/seeds/recordings
descriptions=$folder/seeds/descriptions
mkdir -p "$recordings" "$descriptions" "$folder/found"
for file in $(find tests/fixtures -name '*.data' -type f -size -40k); do
    cp "$file" "$recordings/$(echo "$file" | tr / _)"
done
for file in /sys/kernel/tracing/events/sched/*/format /sys/kernel/tracing/events/irq/*/format; do
    [ ! -r "$file" ] || cp "$file" "$descriptions/$(echo "$file" | tr / _)"
done

tables=$folder/seeds/tables
mkdir -p "$tables"
for file in src/events/tables/*/*/*.json; do
    cp "$file" "$tables/$(echo "$file" | tr / _)"
done

run() {
    case $1 in
        record) seeds=src/wire/fuzz/seeds/record ;;
        sample) seeds="" ;;
        format) seeds=$descriptions ;;
        tables) seeds=$tables ;;
        *) seeds=$recordings ;;
    esac
    mkdir -p "$folder/corpus/$1"
    # shellcheck disable=SC2086 # none or one word
    if "$folder/$machine/release/$1" "$folder/corpus/$1" $seeds -max_total_time="$seconds" -timeout=60 \
        -rss_limit_mb=1024 -max_len=40000 -artifact_prefix="$folder/found/$1-" -print_final_stats=1 >"$folder/$1.log" 2>&1; then
        echo "$1: $(sed -n 's/^stat::number_of_executed_units: *//p' "$folder/$1.log") inputs" >&2
    else
        tail -n 40 "$folder/$1.log" >&2
        echo "error: the fuzz target $1 found something" >&2
        return 1
    fi
}

# Two at a time, each pair waited for.
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

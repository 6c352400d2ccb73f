#!/bin/sh
# Runs the tests from a fresh clone: installs what they need from Debian's packages, then checks format, lints and all
# tests of the workspace. As root everything runs; for an ordinary user the tests that need privileges are skipped and
# print so. With RPERF_CI=1 a missing tool is an error, and the slow tests run, too: the shell tests of Linux perf, fuzzing,
# static builds and guests.
set -eu
cd "$(dirname "$0")/.."

started=$(date +%s)
# A single build does not need incremental state.
[ -z "${RPERF_CI:-}" ] || export CARGO_INCREMENTAL=0
say() { printf '\n==> %s (after %d s)\n' "$*" $(($(date +%s) - started)) >&2; }
missing() {
    if [ -n "${RPERF_CI:-}" ]; then echo "error: $*" >&2; exit 1; fi
    echo "skipped: $*" >&2
}

say "Debian packages"
wanted=""
slow=""
[ -z "${RPERF_CI:-}" ] || slow="qemu-user-static qemu-system-x86 qemu-system-arm busybox-static cpio make"
for package in linux-perf gcc g++ libc6-dev binutils chromium golang-go tmux zsh fish man-db mandoc babeltrace2 \
    python3-venv python3-pandas python3-matplotlib $slow \
    $([ "$(uname -m)" = aarch64 ] || echo binutils-aarch64-linux-gnu); do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || wanted="$wanted $package"
done
if [ -n "$wanted" ]; then
    if [ "$(id -u)" = 0 ]; then as_root=""; else as_root="sudo"; fi
    if [ -z "$as_root" ] || command -v sudo >/dev/null; then
        $as_root apt-get -o DPkg::Lock::Timeout=900 update -qq
        # shellcheck disable=SC2086 # a list of words
        DEBIAN_FRONTEND=noninteractive $as_root apt-get -o DPkg::Lock::Timeout=900 \
            install -y -qq --no-install-recommends $wanted >/dev/null
    else
        missing "no root and no sudo to install:$wanted"
    fi
fi

if [ "$(id -u)" = 0 ] && [ ! -e /sys/kernel/tracing/events ]; then
    mount -t tracefs nodev /sys/kernel/tracing || missing "tracefs cannot be mounted"
fi

if [ -n "${RPERF_CI:-}" ]; then
    say "Rust targets"
    for machine in x86_64 aarch64; do
        triple=$machine-unknown-linux-musl
        rustup target add "$triple" >/dev/null 2>&1 || missing "rustup cannot add the target $triple"
    done
fi

say "format"
cargo fmt --all --check
cargo fmt --manifest-path tests/fuzz/Cargo.toml --check

say "lints"
cargo clippy --workspace --all-targets --quiet -- -D warnings

target=${CARGO_TARGET_DIR:-target}

say "a program that folds stacks"
# inferno reads the text of script; it is installed from the registry, and never a part of rperf (CDDL).
mkdir -p "$target/tools"
tools=$(cd "$target/tools" && pwd)
[ -x "$tools/bin/inferno-collapse-perf" ] ||
    cargo install --quiet --locked --root "$tools" --no-default-features --features cli \
        --bin inferno-collapse-perf inferno@0.12.8 || missing "inferno-collapse-perf cannot be installed"
PATH=$tools/bin:$PATH
export PATH

say "tests"
# Guests need the static builds; their tests run at the end. Tests spend half of their time waiting for the programs
# they record: three run at a time on two CPUs.
cpus=$(nproc)
log=$target/tests.log
# `cargo test WORDS -- WORDS`; without a terminal `--quiet` prints a dot for each test.
run_tests() {
    { cargo test --quiet --no-fail-fast "$@" && echo "tests: passed"; } 2>&1 | tee "$log"
    tail -n 1 "$log" | grep -qx 'tests: passed'
}
# tests CARGO_WORDS -- HARNESS_WORDS: a test that records real processes may fail on a busy machine: it gets a second try,
# alone. A test target without a list of failed tests (it does not compile, or it crashed) and a failed example of the
# documentation fail at once.
tests() {
    if run_tests "$@"; then return; fi
    failed=$(awk '/^failures:$/ { n = 0 } /^    [^ ]/ { name[n++] = substr($0, 5) }
        /^test result: FAILED/ { while (n) print name[--n] }' "$log" | sort -u)
    targets=$(grep -c '^    `-p ' "$log" || true)
    lists=$(grep -c '^test result: FAILED' "$log" || true)
    if [ -z "$failed" ] || [ "$targets" != "$lists" ] || echo "$failed" | grep -q ' '; then exit 1; fi
    say "a second try, one at a time, of" $failed
    # shellcheck disable=SC2086 # a list of words
    run_tests --workspace -- --test-threads 1 --exact $failed
}
tests --workspace -- --test-threads $((cpus + (cpus + 1) / 2)) --skip guest::

if [ -z "${RPERF_CI:-}" ]; then
    say "passed, without the slow tests: those run with RPERF_CI=1"
    exit
fi

say "shell tests of Linux perf"
# Their results are compared with those of perf. They record, too: if results are worse on a busy machine, all run again.
compare() { OUT=$target/perf-suite sh tests/perf-suite.sh "$target/debug/rperf"; }
if [ "$(id -u)" != 0 ]; then
    missing "the shell tests of Linux perf need root"
elif [ -d /usr/libexec/perf-core/tests/shell ] || [ -d /usr/lib/perf-core/tests/shell ]; then
    compare || compare
else
    missing "this linux-perf has no shell tests"
fi

say "fuzzing"
# The fuzzer is installed from the registry. Inputs are the same each time: new ones are for longer runs by hand.
if sh tests/fuzz.sh 0; then
    FUZZ_SEED=1 sh tests/fuzz.sh 6
else
    missing "the fuzz targets cannot be built: sh tests/fuzz.sh 0"
fi

say "static builds"
# Both at once: each build ends on a single core.
triples=$(rustup target list --installed 2>/dev/null | grep -E '^(x86_64|aarch64)-unknown-linux-musl$' || true)
# shellcheck disable=SC2046 # words
[ -z "$triples" ] || cargo build --profile checked --quiet $(printf ' --target %s' $triples)
for machine in x86_64 aarch64; do
    triple=$machine-unknown-linux-musl
    binary=$target/$triple/checked/rperf
    [ -x "$binary" ] || continue
    if readelf -d "$binary" | grep -q NEEDED; then
        echo "error: $binary is not static" >&2
        exit 1
    fi
    runner=""
    if [ "$(uname -m)" != "$machine" ]; then
        runner=qemu-$machine-static
        command -v "$runner" >/dev/null || { missing "$runner to start the $machine binary"; continue; }
    fi
    $runner "$binary" --version
done

say "the static binary records and reports"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
static=$target/x86_64-unknown-linux-musl/checked/rperf
if [ -x "$static" ] && [ "$(uname -m)" = x86_64 ]; then
    "$static" record -g -e task-clock -o "$scratch/perf.data" -- sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done'
    "$static" report -i "$scratch/perf.data" --stdio --no-children -g none -s comm >"$scratch/report"
    grep -q '  sh' "$scratch/report"
    if command -v qemu-aarch64-static >/dev/null && [ -x "$target/aarch64-unknown-linux-musl/checked/rperf" ]; then
        qemu-aarch64-static "$target/aarch64-unknown-linux-musl/checked/rperf" \
            report -i "$scratch/perf.data" --stdio --no-children -g none -s comm >"$scratch/report.arm64"
        cmp "$scratch/report" "$scratch/report.arm64"
    fi
fi

say "guests"
# A PMU for the x86-64 guest, if its source is available.
if [ -d ../shared/testenv/fakepmu ]; then FAKEPMU=$(cd ../shared/testenv/fakepmu && pwd); export FAKEPMU; fi
if command -v qemu-system-x86_64 >/dev/null && command -v qemu-system-aarch64 >/dev/null; then
    mkdir -p "$target/guests"
    sh tests/guest/fetch.sh amd64 "$target/guests/x86_64"
    sh tests/guest/fetch.sh arm64 "$target/guests/aarch64"
    absolute=$(cd "$target" && pwd)
    RPERF_GUESTS=$absolute/guests RPERF_STATIC=$absolute
    export RPERF_GUESTS RPERF_STATIC
    tests --test main -- guest
else
    missing "no qemu-system to start guests with"
fi

say "all passed"

#!/bin/sh
# From a fresh clone to the first profile: builds rperf, records a real workload and prints the report. Needs a Rust
# toolchain; installs a C linker if it is missing and this is permitted.
set -eu
cd "$(dirname "$0")/../.."

say() { printf '\n==> %s\n' "$*" >&2; }

if ! command -v cargo >/dev/null; then
    echo "cargo is missing: install a Rust toolchain and run this again" >&2
    exit 1
fi

if ! command -v cc >/dev/null; then
    if [ "$(id -u)" = 0 ]; then as_root=""
    elif command -v sudo >/dev/null; then as_root="sudo"
    else
        echo "a C linker is missing: as root, run  apt-get install gcc libc6-dev" >&2
        exit 1
    fi
    say "installing gcc and libc6-dev, for the linker"
    $as_root apt-get -o DPkg::Lock::Timeout=900 update -qq
    $as_root apt-get -o DPkg::Lock::Timeout=900 install -y -qq --no-install-recommends gcc libc6-dev >/dev/null
fi

target=${CARGO_TARGET_DIR:-target}
out=$target/first_profile
mkdir -p "$out"

say "building rperf"
cargo build --release --quiet
rperf=$target/release/rperf

say "building the workload, with frame pointers so that its stacks can be unwound"
rustc -O -g -C force-frame-pointers=yes -o "$out/workload" examples/first_profile/workload.rs

# For unprivileged users, perf_event_paranoid may forbid recording the kernel and other users' processes; then only the
# workload is recorded.
paranoid=$(cat /proc/sys/kernel/perf_event_paranoid 2>/dev/null || echo 4)
if [ "$(id -u)" = 0 ] || [ "$paranoid" -le 0 ]; then
    say "recording the whole system with callchains while the workload runs"
    set -- -ag
else
    say "recording the workload with callchains (perf_event_paranoid is $paranoid and you are not root: no other processes)"
    set -- -g
fi
"$rperf" record "$@" -o "$out/perf.data" -- "$out/workload" 3

say "where the time went (rperf report --stdio --no-children -g none)"
"$rperf" report -i "$out/perf.data" --stdio --no-children -g none

say "next: $rperf report -i $out/perf.data --stdio   with call graphs, or"
echo "         $rperf script -i $out/perf.data           sample by sample" >&2

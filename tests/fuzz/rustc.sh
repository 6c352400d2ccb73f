#!/bin/sh
# What cargo runs in place of rustc (RUSTC_WRAPPER): branches are counted and arithmetic is checked in what is fuzzed, and
# in readers of object files. Other crates are compiled as ever, which takes less time. A stable compiler does: the counters
# are a pass of LLVM.
set -eu
crate=${CARGO_PKG_NAME:-}
# Build scripts run by themselves: nobody would count.
case " $* " in *" build_script_"*) crate="" ;; esac
case $crate in
    # Needed by what is fuzzed, and not reached.
    rperf-hist | rperf-disasm | rperf-count) ;;
    rperf-* | gimli | object | rustc-demangle)
        set -- "$@" -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cdebug-assertions -Coverflow-checks
        for feature in inline-8bit-counters pc-table trace-compares; do
            set -- "$@" -Cllvm-args=-sanitizer-coverage-$feature
        done
        ;;
esac
exec "$@"

#!/bin/sh
# Run by cargo instead of rustc (RUSTC_WRAPPER): enables coverage counters and arithmetic checks in the fuzzed crates,
# in readers of object files, and in rustc-demangle. Other crates are compiled as usual, which is faster. A stable compiler
# suffices: the counters are an LLVM pass.
set -eu
crate=${CARGO_PKG_NAME:-}
# Build scripts run alone: they lack the counters' runtime.
case " $* " in *" build_script_"*) crate="" ;; esac
case $crate in
    # Dependencies of the fuzzed crates that are not fuzzed.
    rperf-hist | rperf-disasm | rperf-count) ;;
    rperf-* | gimli | object | rustc-demangle)
        set -- "$@" -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cdebug-assertions -Coverflow-checks
        for feature in inline-8bit-counters pc-table trace-compares; do
            set -- "$@" -Cllvm-args=-sanitizer-coverage-$feature
        done
        ;;
esac
exec "$@"

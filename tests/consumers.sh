#!/bin/sh
# Compares the results of other programs that read rperf's recordings and exports with those of 'rperf report': names, sums,
# threads, processes, times. The programs come from PyPI (perfetto, opentelemetry-proto, jsonschema) and npm (speedscope's
# schema, the Firefox Profiler's command line, and the node that it needs) into a temporary folder. rustc, gcc and g++ must be
# installed; go, perf, javac and node are used if they are installed. Ends with a line per program, and with status 1 if any
# differs.
#
#   sh tests/consumers.sh [RPERF]       (default: target/debug/rperf)
set -eu
cd "$(dirname "$0")/.."
rperf=$(realpath "${1:-target/debug/rperf}")
tests=$(realpath tests)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

echo "==> installing consumers"
python3 -m venv python
python/bin/pip install --quiet --disable-pip-version-check perfetto opentelemetry-proto jsonschema
mkdir npm
(cd npm && npm init -y >/dev/null && npm install --silent --no-audit --no-fund node@24 @firefox-devtools/profiler-cli speedscope)
schema=$(find npm/node_modules/speedscope -name file-format-schema.json | head -n 1)
[ -n "$schema" ] || { echo "error: the package speedscope has no file-format-schema.json" >&2; exit 1; }
profiler="$scratch/npm/node_modules/.bin/node $scratch/npm/node_modules/.bin/profiler-cli"

echo "==> recording"
record() {
    name=$1
    shift
    "$rperf" record -q -F 997 -o "$name.data" "$@" >/dev/null
}
rustc -O -g -C force-frame-pointers=yes --edition 2021 -o areas "$tests/workloads/areas.rs"
# HOME is for the build-id cache and the session of profiler-cli.
export HOME="$scratch"
record rust -g -e cpu-clock -- ./areas 2000
record rust-dwarf --call-graph dwarf -e cpu-clock:u -- ./areas 400
g++ -O1 -g -fno-omit-frame-pointer -o shapes "$tests/workloads/shapes.cpp"
record cpp -g -e cpu-clock -- ./shapes
gcc -O1 -g -fno-omit-frame-pointer -pthread -o renamed "$tests/workloads/renamed.c"
record renamed -g -e cpu-clock:u -- ./renamed
record two-events -g -e cpu-clock,page-faults -- sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; exec ls -lR /usr/share/doc'
if command -v javac >/dev/null; then
    javac -d . "$tests/workloads/Work.java"
    record java -g -e cpu-clock -- \
        java -XX:+PreserveFramePointer -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit -cp . Work 4000
else
    echo "skipped: javac is not installed"
fi
node=$(command -v node || echo "$scratch/npm/node_modules/.bin/node")
record node -g -e cpu-clock -- "$node" --perf-basic-prof "$tests/workloads/work.js" 2000

echo "==> comparing"
python/bin/python "$tests/consumers/check.py" "$rperf" "$schema" "$profiler" ./*.data

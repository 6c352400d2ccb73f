#!/bin/sh
# Runs the questions of docs/fleet.md in DuckDB and in Spark on the same Parquet files of three hosts and two days, and compares
# the answers with each other and with 'rperf report'. The engines come from PyPI (duckdb, pyspark), and Debian's Java, which
# Spark needs, is installed as root. Ends with a line per question, and with status 1 if an answer differs.
#
#   sh tests/fleet.sh [RPERF]       (default: target/debug/rperf)
set -eu
cd "$(dirname "$0")/.."
rperf=$(realpath "${1:-target/debug/rperf}")
tests=$(realpath tests)
page=$(realpath docs/fleet.md)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

echo "==> installing DuckDB and Spark"
command -v java >/dev/null || DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends default-jre-headless >/dev/null
python3 -m venv python
python/bin/pip install --quiet --disable-pip-version-check duckdb pytz "pyspark<4"

echo "==> recording"
export HOME="$scratch"
gcc -O1 -g -fno-omit-frame-pointer -pthread -o program "$tests/workloads/program.c"
# The same source, another build.
gcc -O0 -g -fno-omit-frame-pointer -pthread -o slower "$tests/workloads/program.c"
record() {
    host=$1 name=$2 day=$3
    shift 3
    unshare --uts sh -c 'hostname "$0"; exec "$@"' "$host" "$rperf" record -q -o "$name.data" "$@" >/dev/null
    # Without a clock reference the file's time is that of the recording.
    touch -d "$day" "$name.data"
}
record web1 web1-old "2026-03-01 12:00 UTC" -g -e cpu-clock -- ./program
record web1 web1-new "2026-03-02 12:00 UTC" -g -e cpu-clock -- ./slower
record web2 web2-old "2026-03-01 12:00 UTC" -g -e cpu-clock -- ./program
record db1 db1-new "2026-03-02 12:00 UTC" -g --off-cpu -e cpu-clock -- sh -c './slower; sleep 0.2; ls -lR /usr/share/doc >/dev/null'
# Too small rings for so many events.
record db1 db1-loss "2026-03-02 13:00 UTC" -m 4 -e cpu-clock -F 20000 --call-graph dwarf,4096 -- ./slower

for file in *.data; do "$rperf" data convert -q --no-inline -i "$file" --to-parquet fleet; done

echo "==> comparing"
python/bin/python "$tests/fleet/check.py" "$rperf" "$page" ./*.data

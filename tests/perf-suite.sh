#!/bin/sh
# Runs the shell tests of Linux perf with perf and with rperf as the command perf, and compares the results.
#
#   sh tests/perf-suite.sh RPERF                  the tests of the package linux-perf, with the perf in PATH
#   sh tests/perf-suite.sh RPERF FOLDER PERF      the tests of another release: its folder tests/shell, and its perf
#
# Prints a heading and a line for each script: its result with perf and with rperf (Ok, Skip, FAILED, or Time after TIMEOUT seconds, default
# 120). The status is 1 if a script's result is worse with rperf and the script is not listed in tests/perf-suite.txt.
# Results, output and times are kept in OUT (default: target/perf-suite); perf's results are reused from there.
# SCRIPTS="A B" runs only these. The tests belong to Linux perf and are not part of this repository. Run as root.
set -u
here=$(cd "$(dirname "$0")" && pwd)
[ $# -eq 1 ] || [ $# -eq 3 ] || { echo "usage: sh tests/perf-suite.sh RPERF [FOLDER PERF]" >&2; exit 2; }
rperf=$(readlink -f "$1") && [ -x "$rperf" ] || { echo "$1: not a program" >&2; exit 2; }
if [ $# -eq 3 ]; then
    scripts=$2 perf=$(readlink -f "$3")
else
    scripts= perf=$(command -v perf) || { echo "there is no perf: install the package linux-perf" >&2; exit 2; }
    for folder in /usr/libexec/perf-core/tests/shell /usr/lib/perf-core/tests/shell; do
        [ -d "$folder" ] && scripts=$folder && break
    done
fi
[ -d "$scripts" ] || { echo "${scripts:-perf-core/tests/shell}: there are no tests" >&2; exit 2; }
scripts=$(cd "$scripts" && pwd)
release=$("$perf" --version | sed -n 's/^perf version \([0-9]*\.[0-9]*\).*/\1/p')
[ -n "$release" ] || { echo "$perf: not perf" >&2; exit 2; }
out=${OUT:-$here/../target/perf-suite}/$release
mkdir -p "$out/perf" "$out/rperf" && out=$(cd "$out" && pwd) || exit 2
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# Links suffice for rperf, which takes its name from the link; another release of perf may be a script that looks for files next
# to it.
mkdir "$work/perf" "$work/rperf"
printf '#!/bin/sh\nexec %s "$@"\n' "$perf" > "$work/perf/perf" && chmod +x "$work/perf/perf"
ln -s "$rperf" "$work/rperf/perf"

# Runs script $2 with tool $1 and writes "RESULT SECONDS" to the tool's folder.
run() {
    log=$out/$1/$(printf '%s' "$2" | tr / _)
    home=$work/home && rm -rf "$home" && mkdir "$home"
    begin=$(date +%s)
    (cd "$home" && HOME=$home PATH=$work/$1:$PATH PAGER=cat DEBUGINFOD_URLS= \
        timeout -k 5 "${TIMEOUT:-120}" "$scripts/$2" < /dev/null > "$log.log" 2>&1)
    case $? in
        0) result=Ok ;;
        2) result=Skip ;;
        124 | 137) result=Time ;;
        *) result=FAILED ;;
    esac
    echo "$result $(($(date +%s) - begin))" > "$log.result"
}

# The rank of a result: the higher the better.
rank() {
    case $1 in
        Ok) echo 2 ;;
        Skip) echo 1 ;;
        *) echo 0 ;;
    esac
}

worse=0
printf '%-52s %-8s %-8s\n' "$scripts" "perf $release" rperf
cd "$scripts" || exit 2
for script in ${SCRIPTS:-*.sh coresight/*.sh}; do
    [ -f "$script" ] || { [ -n "${SCRIPTS:-}" ] && echo "$script: there is no such test" >&2 && exit 2; continue; }
    name=$(printf '%s' "$script" | tr / _)
    [ -s "$out/perf/$name.result" ] || run perf "$script"
    run rperf "$script"
    read -r reference _ < "$out/perf/$name.result"
    read -r own _ < "$out/rperf/$name.result"
    reason=$(awk -v release="$release" -v script="$script" \
        '$1 == release && $2 == script { sub(/^[^ ]+ +[^ ]+ +/, ""); print }' "$here/perf-suite.txt")
    note=
    if [ "$(rank "$own")" -lt "$(rank "$reference")" ]; then
        note=${reason:-WORSE: see $out/rperf/$name.log}
        [ -n "$reason" ] || worse=$((worse + 1))
    elif [ -n "$reason" ]; then
        note="(listed, but not worse)"
    elif [ "$(rank "$own")" -gt "$(rank "$reference")" ]; then
        note=better
    fi
    printf '%-52s %-8s %-8s %s\n' "$script" "$reference" "$own" "$note"
done
[ "$worse" -eq 0 ] || { echo "$worse scripts are worse with rperf" >&2; exit 1; }

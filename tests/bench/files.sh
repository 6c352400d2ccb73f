# Records the files that run.sh measures; sourced by it. `need NAME` creates NAME.data in the current folder if it does
# not exist. Recorders run with real-time priority (chrt), and so do their workloads except that of hard: other programs
# have few samples.

build_workloads() {
    g++ -O2 -g -fno-omit-frame-pointer -pthread "$here/load.cpp" -o load
    g++ -O2 -g -fno-omit-frame-pointer -pthread "$here/paths.cpp" -o paths
    rustc --edition 2021 -O -C debuginfo=1 "$here/load.rs" -o load-rust
    g++ -O2 "$here/limit.cpp" -o limit
    g++ -O2 "$here/repeat.cpp" -o repeat
    gcc -O2 "$here/syscalls.c" -o syscalls
}

real_time() { chrt -r 1 "$@" 2>/dev/null; }
record_all() { real_time perf record -q -a -g -m 4096 "$@"; }
record_calls() { real_time perf record -q -e raw_syscalls:sys_enter -a -m 4096 -o "$1" -- sh -c "./syscalls $2 & ./syscalls $2; wait"; }

need() {
    [ ! -e "$1.data" ] || return 0
    [ -x repeat ] || build_workloads
    case $1 in
    fp) record_all -F 25000 -o fp.data -- ./load "${SECONDS_TO_RECORD:-40}" ;;
    zstd) record_all -F 25000 -z -o zstd.data -- ./load "${SECONDS_TO_RECORD:-40}" ;;
    pipe) record_all -F 25000 -o - -- ./load "${SECONDS_TO_RECORD:-40}" >pipe.data ;;
    tp) record_calls tp.data "${CALLS_TO_RECORD:-4700000}" ;;
    tp-short) record_calls tp-short.data 940000 ;;
    dwarf) real_time perf record -q -F 2000 --call-graph dwarf -m 4096 -o dwarf.data -- ./load 5 ;;
    dwarf-rust) real_time perf record -q -F 2000 --call-graph dwarf -m 4096 -o dwarf-rust.data -- ./load-rust 5 ;;
    hard) record_all -F 20000 -o hard.data -- chrt -o 0 "$here/mix.sh" 140 "$PWD/paths" ;;
    distinct) real_time perf record -q -F 20000 -g -m 4096 -o distinct.data -- ./paths 13 5 57 ;;
    *-10)
        need "${1%-10}"
        ./repeat 10 "${1%-10}.data" "$1.data"
        ;;
    esac
}

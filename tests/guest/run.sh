#!/bin/sh
# Runs inside a test guest. For each line of `cases` (a name and options of record) records ./load with both
# tools and reads both recordings with both, into /out:
#   NAME.RECORDER.data, NAME.RECORDER.messages and .status of the recorder, NAME.RECORDER.READER and .READER.messages of
#   script, NAME.RECORDER.report.READER of report, NAME.RECORDER.insn.READER of script with instructions (the kernel's
#   are in /proc/kcore), NAME.RECORDER.attrs of perf evlist -v, NAME.RECORDER.header of perf report --header-only
# Lines of `traces` are recorded by both tools, as root and as an unprivileged user: NAME-USER.RECORDER.branches is the
# trace decoded by perf, NAME-USER.RECORDER.dump.READER the dump of its records by each tool.
# For each line of `stat` both tools count ./load: NAME.TOOL.stat, and then its threads: threads.TOOL.stat; for lines of
# `stat_alone` only rperf counts it: NAME.alone.stat.
# probe.sh, if it exists, tests kprobes.
# If `schedstat` exists, the scheduler's counters are recorded by rperf between two readings: schedstat.before,
# schedstat.after, and schedstat.report, which ends with the status.
# Lines of `fixtures` are only recorded by perf: fixtures/NAME.data.
PATH=/payload:$PATH
rounds=
if [ -e fakepmu.ko ]; then insmod ./fakepmu.ko || exit 1; fi
if [ -e prepare.sh ]; then . ./prepare.sh; fi

while read -r name words; do
    for recorder in perf rperf; do
        base=/out/$name.$recorder
        # shellcheck disable=SC2086 # a list of words
        timeout 60 $recorder record -o "$base.data" $words -- ./load $rounds >"$base.messages" 2>&1 </dev/null
        echo $? >"$base.status"
        for reader in perf rperf; do
            timeout 60 $reader script -i "$base.data" >"$base.$reader" 2>"$base.$reader.messages" </dev/null
            timeout 60 $reader report -i "$base.data" --stdio --no-children -g none -n \
                >"$base.report.$reader" 2>/dev/null </dev/null
            timeout 60 $reader script -i "$base.data" -G -F ip,sym,insn >"$base.insn.$reader" 2>/dev/null </dev/null
        done
        perf evlist -v -i "$base.data" >"$base.attrs" 2>&1
        timeout 60 perf report -i "$base.data" --header-only >"$base.header" 2>&1 </dev/null
    done
done <cases

# Records a trace of ./load into NAME.RECORDER.data, and dumps it with both tools.
trace() {
    how=$1 recorder=$3 base=/out/$2.$3
    shift 3
    $how "$recorder" record -o "$base.data" "$@" -- /payload/load 60 >"$base.messages" 2>&1 </dev/null
    echo $? >"$base.status"
    timeout 60 perf script -f --itrace=be -i "$base.data" >"$base.branches" 2>"$base.branches.messages" </dev/null
    for reader in perf rperf; do
        timeout 60 $reader script -f -D -i "$base.data" >"$base.dump.$reader" 2>&1 </dev/null
    done
    perf evlist -f -v -i "$base.data" >"$base.attrs" 2>&1
}

as_root() {
    timeout 60 "$@"
}

# The arguments must not contain blanks.
as_other() {
    echo "exec timeout 60 $*" >/tmp/other/command
    su other -c 'sh /tmp/other/command'
}

# Traces are decoded by perf and dumped by both tools.
if [ -e traces ] && [ -e /sys/bus/event_source/devices/intel_bts ]; then
    # With perf_event_paranoid above -1, unprivileged users may lock little memory.
    echo other:x:1000:1000::/tmp/other:/bin/sh >>/etc/passwd
    mkdir /tmp/other
    chmod 777 /tmp/other /out
    for who in root other; do
        case $who in
        root) level=-1 ;;
        other) level=1 ;;
        esac
        echo $level >/proc/sys/kernel/perf_event_paranoid
        while read -r name words; do
            for recorder in perf rperf; do
                # shellcheck disable=SC2086 # a list of words
                trace as_$who "$name-$who" $recorder $words
            done
        done <traces
    done
    as_other rperf record -o /tmp/other/refused.data -m ,64M --per-thread -e intel_bts//u -- /payload/load 60 \
        >/out/refused 2>&1 </dev/null
    echo $? >>/out/refused
    echo -1 >/proc/sys/kernel/perf_event_paranoid
fi

if [ -e probe.sh ]; then . ./probe.sh; fi

# Each user of `diagnosis` checks the guest with `rperf test`: test-USER, which ends with the status.
if [ -e diagnosis ]; then
    grep -q ^other: /etc/passwd || echo other:x:1000:1000::/tmp/other:/bin/sh >>/etc/passwd
    mkdir -p /tmp/other
    chmod 777 /tmp/other /tmp
    paranoid=$(cat /proc/sys/kernel/perf_event_paranoid)
    echo 2 >/proc/sys/kernel/perf_event_paranoid
    while read -r who; do
        su "$who" -c 'cd /tmp/other; HOME=/tmp/other exec timeout 300 /payload/rperf test' >"/out/test-$who" 2>&1 </dev/null
        echo $? >>"/out/test-$who"
    done <diagnosis
    echo "$paranoid" >/proc/sys/kernel/perf_event_paranoid
fi

if [ -e schedstat ]; then
    cat /proc/schedstat >/out/schedstat.before
    timeout 60 rperf sched stats record -o /out/schedstat.data -- ./load 60 >/out/schedstat.messages 2>&1 </dev/null
    cat /proc/schedstat >/out/schedstat.after
    timeout 60 rperf sched stats report -i /out/schedstat.data >/out/schedstat.report 2>&1 </dev/null
    echo $? >>/out/schedstat.report
fi

# Each line of `bpf_programs` runs rperf with BPF programs: bpf.NAME, which ends with the status, and bpf.NAME.messages.
if [ -e bpf_programs ]; then
    while read -r name words; do
        # shellcheck disable=SC2086 # a list of words
        timeout 120 rperf $words >"/out/bpf.$name" 2>"/out/bpf.$name.messages" </dev/null
        echo $? >>"/out/bpf.$name"
    done <bpf_programs
    # Counts the BPF programs of a running trace, whose ids are read from a recording: bpf.counted, which ends with the status.
    timeout 120 rperf trace -s -a -o /out/bpf.traced -- sleep 100 >/dev/null 2>&1 </dev/null &
    trace=$!
    sleep 4
    rperf record -o /out/bpf.loaded.data -e cpu-clock -- true >/dev/null 2>&1 </dev/null
    ids=$(rperf report -i /out/bpf.loaded.data --header-only 2>/dev/null </dev/null |
        sed -n 's/^# bpf_prog_info \([0-9]*\): .*_rperf_enter addr .*/\1/p')
    timeout 120 rperf stat -b "$ids" -e task-clock -- ./load 60 >/out/bpf.counted 2>/out/bpf.counted.messages </dev/null
    echo $? >>/out/bpf.counted
    kill $trace
fi

if [ -e stat ]; then
    while read -r name words; do
        for tool in perf rperf; do
            # shellcheck disable=SC2086 # a list of words
            timeout 60 $tool stat $words -- ./load >/dev/null 2>"/out/$name.$tool.stat" </dev/null
        done
    done <stat
    while read -r name words; do
        # shellcheck disable=SC2086 # a list of words
        timeout 60 rperf stat $words -- ./load >/dev/null 2>"/out/$name.alone.stat" </dev/null
    done <stat_alone
    ./load 60000 &
    load=$!
    for tool in perf rperf; do
        timeout 60 "$tool" stat --per-thread -p $load -e '{cycles,instructions}' -- sleep 0.2 \
            >/dev/null 2>"/out/threads.$tool.stat" </dev/null
    done
    kill $load
    wait
fi

if [ ! -e fixtures ]; then exit 0; fi
mkdir /out/fixtures
while read -r name words; do
    # shellcheck disable=SC2086 # a list of words
    timeout 60 perf record -o "/out/fixtures/$name.data" $words -- ./load 60 >"/out/fixtures/$name.messages" 2>&1 </dev/null
done <fixtures

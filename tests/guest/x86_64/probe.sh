# kprobes: both tools' definitions, and events that are added, recorded and removed.
mount -t debugfs debug /sys/kernel/debug

for tool in perf rperf; do
    while read -r definition; do
        echo "= $definition"
        $tool probe -D "$definition" 2>/dev/null </dev/null
    done <definitions >"/out/definitions.$tool"
    {
        $tool probe --add do_sys_openat2 --add 'do_sys_openat2%return ret=$retval:s64'
        $tool probe -l 'probe:*'
        $tool probe --add do_sys_openat2 || echo "status $?"
        $tool probe -d 'probe:*'
        $tool probe -d 'probe:*' || echo "status $?"
    } >"/out/life.$tool" 2>&1 </dev/null
done
# Definitions cached by one tool are read by both.
export HOME=/tmp/home
mkdir $HOME
rperf probe --cache -n --add 'own:opened=do_sys_openat2' --add 'own:low=vfs_open+4 first=%di' 2>/dev/null
for tool in perf rperf; do
    $tool probe -D '%own:*' >"/out/kept.$tool" 2>&1 </dev/null
done

# BTF, which perf does not read.
{
    rperf probe -V do_sys_openat2
    rperf probe --add 'opened=do_sys_openat2 dfd filename:ustring flags=how->flags:x64' \
        --add 'ended=do_sys_openat2%return $retval' --add 'named=vfs_open path->dentry->d_name.name:string'
    rperf record -g -e 'probe:*' -o /tmp/probe.data -- cat /payload/definitions /payload/nosuch
    rperf script -i /tmp/probe.data -F event,trace,ip,sym
    rperf stat -e probe:opened -- cat /payload/definitions
    rperf probe -d 'probe:*'
    rperf record -o /tmp/own.data --probe 'do_sys_openat2 filename:ustring' \
        --probe 'do_sys_openat2%return ret=$retval:s64' -- cat /payload/definitions
    rperf script -i /tmp/own.data -F event,trace
    rperf probe -d 'probe:*'
    # This function cannot be probed: kprobes use it themselves.
    rperf probe --add exc_int3
    rperf probe -V block_rq_complete
    rperf probe -m fakepmu -F 'fake*'
    rperf probe -m fakepmu -D '*init*'
} >/out/types 2>&1 </dev/null

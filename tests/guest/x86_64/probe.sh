# Probes of the kernel: what both tools make of definitions, and events that come, are recorded and go.
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
# What one keeps, both read.
export HOME=/tmp/home
mkdir $HOME
rperf probe --cache -n --add 'own:opened=do_sys_openat2' --add 'own:low=vfs_open+4 first=%di' 2>/dev/null
for tool in perf rperf; do
    $tool probe -D '%own:*' >"/out/kept.$tool" 2>&1 </dev/null
done

# What the kernel tells of its own types, which perf doesn't read.
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
    # No probe may be there: the probes themselves use it.
    rperf probe --add exc_int3
    rperf probe -V block_rq_complete
    rperf probe -m fakepmu -F 'fake*'
    rperf probe -m fakepmu -D '*init*'
} >/out/types 2>&1 </dev/null

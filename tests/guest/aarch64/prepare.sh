# kprobes; the first arguments are in x0 and x1.
echo 'p:kprobes/opened do_sys_openat2 dfd=%x0:s32 file=+0(%x1):ustring' >>/sys/kernel/tracing/kprobe_events
echo 'r:kprobes/open_ended do_sys_openat2 ret=$retval' >>/sys/kernel/tracing/kprobe_events

# kprobes, which the machines that run the tests seldom permit.
echo 'p:kprobes/opened do_sys_openat2 dfd=%di:s32 file=+0(%si):ustring' >>/sys/kernel/tracing/kprobe_events
echo 'r:kprobes/open_ended do_sys_openat2 ret=$retval' >>/sys/kernel/tracing/kprobe_events

# Vendor tables for this processor, whatever its CPUID.
mkdir -p /tmp/tables/guest
cat >/tmp/tables/mapfile.csv <<'END'
Family-model,Version,Filename,EventType
[A-Z][A-Za-z]+-[0-9]+-[0-9A-F]+(-[0-9A-F]+)?,v1,guest,core
END
cat >/tmp/tables/guest/core.json <<'END'
[
    {"EventName": "TABLE.CYCLES", "EventCode": "0x3c"},
    {"EventName": "TABLE.INSTRUCTIONS", "EventCode": "0xc0"},
    {"MetricName": "of_table", "MetricExpr": "TABLE.INSTRUCTIONS / TABLE.CYCLES", "MetricGroup": "TopdownL1"}
]
END
export RPERF_EVENTS=/tmp/tables

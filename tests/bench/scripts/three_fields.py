# Counts system calls by pid, number and CPU.

counts = {}


def raw_syscalls__sys_enter(event_name, context, common_cpu, common_secs, common_nsecs, common_pid, common_comm,
                            common_callchain, id, args):
    key = (common_pid, id, common_cpu)
    counts[key] = counts.get(key, 0) + 1


def trace_end():
    print(len(counts), sum(counts.values()))

"""Live events: counts, samples of tracepoints, several events in one ring, a class derived from evsel, PMUs and metrics."""

import os
import subprocess
import time

import perf

cpus, threads = perf.cpu_map(), perf.thread_map()
assert list(threads) == [-1] and len(cpus) == len(list(cpus)) and cpus[-1] == list(cpus)[-1]
assert os.getpid() in list(perf.thread_map(os.getpid()))

# Two events of this process by name, and a counter of all tasks on each CPU.
counted = perf.parse_events("{task-clock,minor-faults}", perf.cpu_map("0"), perf.thread_map(os.getpid()))
assert [event.name for event in counted] == ["task-clock", "minor-faults"] and str(counted[0]) == "evsel(task-clock)"
clock = perf.evsel(perf.TYPE_SOFTWARE, perf.COUNT_SW_TASK_CLOCK, read_format=perf.FORMAT_TOTAL_TIME_ENABLED | perf.FORMAT_TOTAL_TIME_RUNNING, disabled=1)
assert (clock.type, clock.config, clock.sample_type) == (1, 1, perf.SAMPLE_PERIOD | perf.SAMPLE_TID)
clocks = perf.evlist(perf.cpu_map(), threads)
clocks.add(clock)
clocks.open()
clocks.enable()
sum(range(300000))
clocks.disable()
values = [clock.read(cpu, -1) for cpu in cpus]
assert sum(value.val for value in values) > 0
assert all(value.ena >= value.run > 0 and value.values[0] == value.val for value in values), values
clocks.close()

# Samples of a tracepoint, by its number only.
program = "/bin/true" if os.path.exists("/bin/true") else "/usr/bin/true"
evsel = perf.evsel(
    type=perf.TYPE_TRACEPOINT,
    config=perf.tracepoint("sched", "sched_process_exec"),
    freq=0,
    sample_period=1,
    wakeup_events=1,
    sample_type=perf.SAMPLE_PERIOD | perf.SAMPLE_TID | perf.SAMPLE_CPU | perf.SAMPLE_TIME | perf.SAMPLE_RAW,
)
evsel.open(cpus=cpus, threads=threads)
evlist = perf.evlist(cpus, threads)
evlist.add(evsel)
evlist.mmap(pages=16)
assert len(evlist.get_pollfd()) == len(cpus) and evlist.get_pollfd()[0].readable()
child = subprocess.Popen([program])
child.wait()
assert evlist.poll(timeout=5000) > 0
events = []
for cpu in cpus:
    while event := evlist.read_on_cpu(cpu):
        events.append(event)
child_execs = [event for event in events if event.sample_pid == child.pid]
assert len(child_execs) == 1, events
event = child_execs[0]
assert isinstance(event, perf.sample_event) and event.evsel is evsel and event.type == perf.RECORD_SAMPLE
assert (event.filename, event.pid, event.old_pid) == (program, child.pid, child.pid)
assert event.fields() == {"filename": program, "pid": child.pid, "old_pid": child.pid}
assert event.sample_period == 1 and event.sample_cpu in list(cpus) and len(event.raw_buf) > 8
evlist.close()

# Several events in one ring, with the settings of record.
several = perf.parse_events("cpu-clock,sched:sched_process_exec")
several.config()
several.open()
several.mmap()
several.enable()
child = subprocess.Popen([program])
child.wait()
sum(range(3000000))
several.disable()
names, record_types = set(), set()
for cpu in several.all_cpus():
    while event := several.read_on_cpu(cpu):
        if isinstance(event, perf.sample_event):
            names.add(event.evsel.name)
        else:
            record_types.add(type(event).__name__)
assert names == {"cpu-clock", "sched:sched_process_exec"}, names
assert {"comm_event", "task_event", "mmap_event"} <= record_types, record_types


class Tracepoint(perf.evsel):
    """A class with arguments of its own, as in perf's examples."""

    def __init__(self, system, name):
        config = perf.tracepoint(system, name)
        perf.evsel.__init__(self, type=perf.TYPE_TRACEPOINT, config=config, freq=0, sample_period=1, wakeup_events=1,
                            sample_type=perf.SAMPLE_PERIOD | perf.SAMPLE_TID | perf.SAMPLE_CPU | perf.SAMPLE_RAW)


derived = Tracepoint("sched", "sched_switch")
assert isinstance(derived, perf.evsel) and derived.type == perf.TYPE_TRACEPOINT and derived.sample_period == 1
assert derived.config == perf.tracepoint("sched", "sched_switch") and derived.config > 0
switches = perf.evlist(cpus, perf.thread_map(-1))
switches.add(derived)
assert switches[0] is derived
switches.open()
switches.mmap()
time.sleep(0.1)
events = [event for cpu in cpus for event in iter(lambda: switches.read_on_cpu(cpu), None)]
switches.close()
assert any(event.evsel is derived and event.next_comm for event in events if isinstance(event, perf.sample_event)), events

by_name = {pmu.name(): pmu for pmu in perf.pmus()}
assert {"software", "tool", "tracepoint"} <= set(by_name) and repr(by_name["tool"]) == "pmu(tool)", by_name
software = {event["name"]: event for event in by_name["software"].events()}
assert software["page-faults"]["encoding_desc"] == "software/config=2/", software
config = perf.tracepoint("sched", "sched_switch")
traced = {event["name"]: event for event in by_name["tracepoint"].events()}
assert traced["sched:sched_switch"]["str"] == "config=%#x" % config and "print fmt" in traced["sched:sched_switch"]["long_desc"]
assert all(metric["MetricExpr"] and type(metric["MetricGroup"]) is list for metric in perf.metrics())
assert "CPUs_utilized" in [metric["MetricName"] for metric in perf.metrics()]
print("good")

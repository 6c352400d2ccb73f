"""One function per consumer or format: it returns the differences between an export of a recording, as the consumer reads
it, and what `report` shows, as lines."""

import contextlib
import json
import os
import re
import signal
import time
from collections import Counter

from expected import differing, functions, run, summed

# Attempts to load a profile, and the seconds between them.
LOADS = 20
PAUSE = 3


def convert(expected, target, name, *words):
    """Exports the recording; returns the path of the export."""
    path = expected.path.with_suffix(f".{target}{name}")
    run(expected.rperf, "data", "convert", "--force", "-q", "-i", expected.path, f"--to-{target}", path, *expected.options, *words)
    return path


def folded(expected):
    """Folded text: stacks of one event. Blanks of the thread's name are underscores, semicolons of functions colons."""
    found = []
    for event in expected.events:
        path = convert(expected, "folded", ".txt", "-e", event)
        stacks = Counter()
        for line in path.read_text().splitlines():
            stack, count = line.rsplit(" ", 1)
            stacks[stack] += int(count)
        escaped = lambda stack: (stack[0].replace(" ", "_"), *(name.replace(";", ":") for name in stack[1:]))
        wanted = summed((";".join(escaped(stack)), count) for stack, count in expected.stacks(event).items())
        found += differing(f"folded {event}", wanted, stacks)
    return found


def perf_json(expected):
    """The JSON of `perf data convert`, which has no inlined functions."""
    if expected.has_inlined:
        return []
    file = json.loads(convert(expected, "json", ".json").read_text())
    found = []
    wanted = [[s.pid, s.tid, s.comm, s.time, [name or None for _, name in s.frames]] for s in expected.samples]
    rows = []
    for row in file["samples"]:
        names = [frame.get("symbol") for frame in reversed(row["callchain"])]
        rows.append([row["pid"], row["tid"], row["comm"], row["timestamp"], names])
    if sorted(rows, key=str) != sorted(wanted, key=str):
        found.append(f"JSON: {len(rows)} samples differ from those of script ({len(wanted)})")
    return found


def speedscope(expected, schema):
    """speedscope: its schema, and sums as it shows them."""
    import jsonschema

    file = json.loads(convert(expected, "speedscope", ".json").read_text())
    errors = jsonschema.Draft7Validator(schema).iter_errors(file)
    found = [f"schema: {error.json_path}: {error.message[:200]}" for error in errors]
    names = [frame["name"] for frame in file["shared"]["frames"]]
    several = len(expected.events) > 1
    wanted = {}
    for event in expected.events:
        suffix = f" ({event})" if several else ""
        for (pid, tid, comm), period in expected.threads(event).items():
            wanted[f"{comm} {pid}/{tid}{suffix}"] = (event, (pid, tid, comm), period)
    found += differing("profiles", Counter(wanted.keys()), Counter(profile["name"] for profile in file["profiles"]))
    for profile in file["profiles"]:
        event, thread, period = wanted[profile["name"]]
        if (profile["startValue"], profile["endValue"]) != (0, period):
            found.append(f"{profile['name']}: {profile['startValue']} to {profile['endValue']}, not 0 to {period}")
        own, total = Counter(), Counter()
        for stack, weight in zip(profile["samples"], profile["weights"], strict=True):
            own[names[stack[-1]]] += weight
            for name in {names[frame] for frame in stack}:
                total[name] += weight
        found += differing(f"self in {profile['name']}", expected.own(event, thread), own)
        found += differing(f"total in {profile['name']}", expected.total(event, thread), total)
    return found


def pprof(expected):
    """`go tool pprof`: tables of functions and of labels."""
    path = convert(expected, "pprof", ".pb.gz")
    pprof_of = lambda *words: run("go", "tool", "pprof", *words, path)
    found = []
    for event in expected.events:
        samples = expected.of(event)
        clock = "clock" in event
        unit = "ns" if clock else "count"
        index = f"-sample_index={event}"
        text = pprof_of("-top", "-nodecount=1000000", "-nodefraction=0", "-edgefraction=0", f"-unit={unit}", index)
        own, total = Counter(), Counter()
        for line in text[text.index("flat%") :].splitlines()[1:]:
            flat, _, _, cum, _, name = line.split(None, 5)
            name = name.removesuffix(" (inline)")
            own[name] += int(flat.removesuffix("ns"))
            total[name] += int(cum.removesuffix("ns"))
        wanted = functions(samples)
        found += differing(f"flat {event}", wanted[0], own)
        found += differing(f"cum {event}", wanted[1], total)
        count = f"-sample_index={'samples' if len(expected.events) == 1 else event + '_samples'}"
        shown = pprof_of("-top", "-nodecount=1", "-unit=count", count)
        total_shown = re.search(r"of (\d+) total", shown)
        if not total_shown or int(total_shown[1]) != len(samples):
            found.append(f"{count}: {total_shown and total_shown[0]}, not {len(samples)}")
    raw = pprof_of("-raw")
    labels = Counter()
    rows = re.split(r"^Locations$", raw.split("Samples:\n", 1)[1], flags=re.M)[0]
    # pprof drops numbers that are 0, as those of the idle tasks.
    for values, comm, ids in re.findall(r"^ +([\d ]+): .*\n +comm:\[(.*)\]\n(?: +(pid:.*)\n)?", rows, re.M):
        pid, tid = (re.search(rf"{key}:\[(-?\d+)\]", ids) for key in ("pid", "tid"))
        labels[int(pid[1]) if pid else 0, int(tid[1]) if tid else 0, comm] += sum(int(value) for value in values.split()[::2])
    found += differing("labels", Counter((s.pid, s.tid, s.comm) for s in expected.samples), labels)
    seconds = (max(s.time for s in expected.samples) - min(s.time for s in expected.samples)) / 1e9
    number, unit = re.search(r"Duration: ([\d.]+)(us|ms|s|mins)", pprof_of("-top")).groups()
    duration = float(number) * {"us": 1e-6, "ms": 1e-3, "s": 1, "mins": 60}[unit]
    if abs(duration - seconds) > 0.01 * seconds:
        found.append(f"duration: {duration} s, not {seconds} s")
    event, period = re.search(r"^PeriodType: (.*) \w+\nPeriod: (\d+)", raw).groups()
    period, periods = int(period), [s.period for s in expected.of(event)]
    if not min(periods) <= period <= max(periods):
        found.append(f"period: {period}, not within {min(periods)} and {max(periods)}")
    return found


def firefox(expected, command):
    """profiler-cli of the Firefox Profiler: threads, processes and functions."""
    path = convert(expected, "firefox", ".json")
    ask = lambda *words: run(*command, *words)
    load(ask, path)
    try:
        return profiler_differences(expected, ask)
    finally:
        ask("stop", "--all")


def load(ask, path):
    """Loads a profile. The daemon gives up half a second after its start, which is too early on a busy machine."""
    for _ in range(LOADS):
        try:
            return ask("load", path)
        except SystemExit as error:
            if "did not become ready" not in str(error):
                raise
            failed = error
            time.sleep(PAUSE)
            stop_daemon(str(error))
    raise failed


def stop_daemon(message):
    """Ends the daemon that the message of a failed start names."""
    named = re.search(r"still be running as pid (\d+)", message)
    if named:
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(named[1]), signal.SIGTERM)


def profiler_differences(expected, ask):
    main = max(expected.events, key=lambda event: len(expected.of(event)))
    clock = "clock" in main
    scale = 1e6 if clock else 1
    weight = lambda sample: sample.period if clock else 1
    threads = json.loads(ask("thread", "list", "--json"))["threads"]
    found = differing(
        "threads",
        Counter((s.pid, s.tid, s.comm) for s in {(s.pid, s.tid, s.comm): s for s in expected.samples}.values()),
        Counter((int(t["pid"]), t["tid"], t["name"]) for t in threads),
    )
    names = expected.processes()
    for thread in threads:
        name = names.get(int(thread["pid"]))
        if thread["processName"] != name:
            found.append(f"thread {thread['tid']}: process {thread['processName']!r}, not {name!r}")
        key = (int(thread["pid"]), thread["tid"], thread["name"])
        samples = [s for s in expected.of(main) if (s.pid, s.tid, s.comm) == key]
        if clock and samples:
            # The profiler counts CPU time between samples: what precedes the first one of a thread is not in it.
            cpu = sum(s.period for s in sorted(samples, key=lambda s: s.time)[1:]) / 1e6
            if abs(thread["cpuMs"] - cpu) > 1e-6:
                found.append(f"CPU time of {key}: {thread['cpuMs']}, not {cpu}")
        if thread["markerCount"] != sum((s.pid, s.tid, s.comm) == key for s in expected.samples if s.event != main):
            found.append(f"markers of {key}: {thread['markerCount']}")
        shown = json.loads(ask("thread", "functions", "--thread", thread["threadHandle"], "--limit", "0", "--include-idle", "--json"))
        own, total = Counter(), Counter()
        for row in shown["functions"]:
            own[row["name"], row.get("library")] += row["selfSamples"] * scale
            total[row["name"], row.get("library")] += row["totalSamples"] * scale
        wanted = Counter(), Counter()
        for sample in samples:
            keys = [frame_key(*frame) for frame in zip(sample.frames, sample.stack)]
            wanted[0][keys[-1]] += weight(sample)
            for key_of in set(keys):
                wanted[1][key_of] += weight(sample)
        found += differing(f"self in {key}", wanted[0], own, within=0.1)
        found += differing(f"total in {key}", wanted[1], total, within=0.1)
    return found


def frame_key(frame, name):
    """The name and the library of a frame."""
    return name, frame[0] or None


def perfetto(expected):
    """The message classes of the package perfetto, resolved as Perfetto's importer does."""
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace

    trace = Trace()
    trace.ParseFromString(convert(expected, "perfetto", ".pftrace").read_bytes())
    found = [f"unknown fields: {fields}" for fields in unknown_fields(trace)]
    tables, defaults, counts = {}, {}, {}
    rows = []
    threads, processes = {}, {}
    for packet in trace.packet:
        sequence = packet.trusted_packet_sequence_id
        if packet.sequence_flags & 1:
            tables[sequence] = {}
        for field, entries in packet.interned_data.ListFields():
            table = tables[sequence].setdefault(field.name, {})
            table.update((entry.iid, entry) for entry in entries)
        if packet.HasField("trace_packet_defaults"):
            defaults[sequence] = packet.trace_packet_defaults.perf_sample_defaults.timebase
        for process in packet.process_tree.processes:
            processes[process.pid] = process.cmdline[0]
        for thread in packet.process_tree.threads:
            threads.setdefault((thread.tgid, thread.tid), []).append(thread.name)
        if packet.HasField("perf_sample"):
            sample, interned = packet.perf_sample, tables[sequence]
            text = lambda iid: interned["function_names"][iid].str.decode()
            stack = interned["callstacks"][sample.callstack_iid].frame_ids
            frames = [interned["frames"][frame] for frame in stack]
            for frame in frames:
                if frame.mapping_id and not interned["mappings"][frame.mapping_id].path_string_ids:
                    found.append(f"mapping {frame.mapping_id} without a path")
            before = counts.get(sequence, 0)
            counts[sequence] = sample.timebase_count
            names = tuple(text(frame.function_name_id) for frame in frames)
            rows.append((packet.timestamp, sample.pid, sample.tid, defaults[sequence].name, sample.timebase_count - before, names))
    wanted = [(s.time, s.pid, s.tid, s.event, s.period, tuple(s.stack)) for s in expected.samples]
    found += differing("samples", Counter(wanted), Counter(rows))
    names = {}
    for sample in sorted(expected.samples, key=lambda sample: sample.time):
        names[sample.pid, sample.tid] = sample.comm
    last = {key: names[-1] for key, names in threads.items()}
    found += [f"thread {key}: {last.get(key)!r}, not {name!r}" for key, name in names.items() if last.get(key) != name]
    wanted = expected.processes()
    found += [f"process {pid}: {name!r}, not {wanted.get(pid)!r}" for pid, name in processes.items() if name != wanted.get(pid)]
    return found


def otlp(expected):
    """The message classes of the package opentelemetry-proto."""
    from opentelemetry.proto.profiles.v1development.profiles_pb2 import ProfilesData

    data = ProfilesData()
    data.ParseFromString(convert(expected, "otlp", ".otlp").read_bytes())
    found = [f"unknown fields: {fields}" for fields in unknown_fields(data)]
    tables = data.dictionary
    text = lambda index: tables.string_table[index]
    profiles = [
        profile
        for resource in data.resource_profiles
        for scope in resource.scope_profiles
        for profile in scope.profiles
    ]
    found += differing(
        "events", Counter(expected.events), Counter(text(profile.sample_type.type_strindex) for profile in profiles)
    )
    rows = []
    for profile in profiles:
        event = text(profile.sample_type.type_strindex)
        for sample in profile.samples:
            attributes = {}
            for index in sample.attribute_indices:
                attribute = tables.attribute_table[index]
                value = attribute.value
                attributes[text(attribute.key_strindex)] = getattr(value, value.WhichOneof("value"))
            names = [
                text(tables.function_table[line.function_index].name_strindex)
                for index in tables.stack_table[sample.stack_index].location_indices
                for line in tables.location_table[index].lines
            ]
            task = (attributes["process.pid"], attributes["thread.id"], attributes["thread.name"])
            values = zip(sample.timestamps_unix_nano, sample.values, strict=True)
            rows += [(time, *task, event, period, tuple(reversed(names))) for time, period in values]
    # Times are those since 1970, by the recording's clock reference or its file's time: their distances are compared.
    first = min(s.time for s in expected.samples)
    start = min(row[0] for row in rows)
    wanted = Counter((s.time - first, s.pid, s.tid, s.comm, s.event, s.period, tuple(s.stack)) for s in expected.samples)
    return found + differing("samples", wanted, Counter((row[0] - start, *row[1:]) for row in rows))


def unknown_fields(message):
    """The numbers of fields that a message class does not know, below `message`."""
    from google.protobuf.unknown_fields import UnknownFieldSet

    fields = [field.field_number for field in UnknownFieldSet(message)]
    if fields:
        yield f"{message.DESCRIPTOR.full_name} {fields}"
    for field, value in message.ListFields():
        if field.message_type:
            for child in value if field.is_repeated else [value]:
                yield from unknown_fields(child)


def perf(expected, program):
    """perf's `report` of the recording: the same rows."""
    if len(expected.events) != 1 or expected.has_inlined:
        return []
    words = ["report", "-i", expected.path, "--stdio", "-t", "\t", "-g", "none", *expected.options]
    rows = lambda tool, *more: Counter(
        "\t".join(cell.strip() for cell in line.split("\t"))
        for line in run(*tool, *words, *more).splitlines()
        if line and not line.startswith("#")
    )
    found, ended = stacks_of_perf(expected, program)
    tables = [
        ("--no-children", "-F", "overhead,sample,period,dso,sym"),
        ("--no-children", "-F", "sample,period,pid"),
    ]
    # perf's rows lack the callers that its unwinder did not reach.
    if not ended:
        tables.append(("--children", "-F", "overhead_children,overhead,dso,sym"))
    for more in tables:
        found += differing(" ".join(more), rows([expected.rperf], *more), rows(program, *more))
    return found


# The share of stacks that perf's unwinder may end before the outermost caller.
MAX_ENDED = 0.05


def stacks_of_perf(expected, program):
    """The differences between perf's stacks and rperf's, and how many of perf's end before the outermost caller."""
    words = ["script", "-i", expected.path, "-F", "time,ip,sym", *expected.options]
    stacks = lambda tool: [
        [line.split() for line in sample.splitlines()] for sample in run(*tool, *words).split("\n\n") if sample.strip()
    ]
    ours, theirs = stacks([expected.rperf]), stacks(program)
    if len(ours) != len(theirs):
        return [f"script: {len(theirs)} samples instead of {len(ours)}"], 0
    pairs = [(own, other) for own, other in zip(ours, theirs) if own != other]
    found = [f"script: {other} instead of {own}" for own, other in pairs if other != own[: len(other)]]
    ended = len(pairs) - len(found)
    if ended > MAX_ENDED * len(ours):
        found.append(f"script: {ended} of {len(ours)} stacks end early")
    return found, ended

"""Compares what other programs read from recordings and exports with what `report` shows. Called by consumers.sh:
check.py RPERF SPEEDSCOPE-SCHEMA PROFILER-CLI RECORDING..., where PROFILER-CLI is a command of several words."""

import json
import shlex
import shutil
import sys
from pathlib import Path

import consumers
from expected import Expected


def main():
    rperf, schema, profiler, *paths = sys.argv[1:]
    schema = json.loads(Path(schema).read_text())
    checks = {
        "report": lambda expected: expected.differences(),
        "folded stacks": consumers.folded,
        "perf's JSON": consumers.perf_json,
        "speedscope": lambda expected: consumers.speedscope(expected, schema),
        "Firefox profiler-cli": lambda expected: consumers.firefox(expected, shlex.split(profiler)),
        "Perfetto": consumers.perfetto,
        "OpenTelemetry": consumers.otlp,
    }
    for name, program, check in [
        ("go tool pprof", "go", consumers.pprof),
        ("perf", "perf", lambda expected: consumers.perf(expected, ["perf"])),
    ]:
        if shutil.which(program):
            checks[name] = check
        else:
            print(f"skipped: {program} is not installed")
    failed = {name: 0 for name in checks}
    for path in map(Path, paths):
        expected = Expected(rperf, path)
        every = [expected]
        if expected.has_inlined:
            # Some checks cannot compare inlined functions; without these, all checks apply.
            every.append(Expected(rperf, path, "--no-inline"))
        for expected in every:
            words = " ".join([path.name, *expected.options])
            print(f"{words}: {len(expected.samples)} samples of {', '.join(expected.events)}", flush=True)
            for name, check in checks.items():
                found = check(expected)
                failed[name] += len(found)
                for line in found[:20]:
                    print(f"  {name}: {line}")
                if len(found) > 20:
                    print(f"  {name}: {len(found) - 20} more")
    print()
    for name, number in failed.items():
        print(f"{name}: {'agrees' if number == 0 else f'{number} differences'}")
    sys.exit(any(failed.values()))


main()

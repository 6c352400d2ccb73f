#!/usr/bin/env python3
"""Compares the CPU time of two binaries on the recordings of the current folder.

usage: gate.py [--time] OLD NEW

Both run alternately on fp.data, tp.data and dwarf.data, as far as these exist; the minimum of each counts. If a row
is slower by more than the limit, or if the times vary too much to tell, valgrind (if installed) also counts the
instructions on one thread, unless --time is given. The instructions decide if the times vary, or if the instructions grew
by more than the limit; otherwise the CPU times decide.
Exits with 1 if a row is slower, and with 2 if a command fails or nothing can be measured.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

# File and arguments of each row.
ROWS = [
    ("fp", "report --stdio --no-inline"),
    ("fp", "report --stdio --no-children -g none"),
    ("fp", "script --no-inline"),
    ("tp", "report --stdio --no-children"),
    ("tp", "script"),
    ("dwarf", "script"),
    ("dwarf", "report --stdio -s srcline"),
]
ROUNDS = 5
# A row may take this much longer.
LIMIT = 1.05
# Times vary too much if the second best is this much above the best.
NOISE = 1.05


def run(command):
    """CPU seconds of a command, whose output is discarded."""
    pid = os.posix_spawn(
        command[0],
        command,
        os.environ,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0),
            (os.POSIX_SPAWN_OPEN, 2, "/dev/null", os.O_WRONLY, 0),
        ],
    )
    _, status, usage = os.wait4(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    if code != 0:
        print(f"gate: {' '.join(command)}: exit status {code}", file=sys.stderr)
        sys.exit(2)
    return usage.ru_utime + usage.ru_stime


def instructions(command):
    """Instructions of a command, or None without valgrind or its count."""
    if not shutil.which("valgrind"):
        return None
    with tempfile.NamedTemporaryFile() as profile:
        counted = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={profile.name}"]
        done = subprocess.run(counted + command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
        collected = re.search(rb"Collected : (\d+)", done.stderr)
        return int(collected[1]) if collected else None


def compare(old, new, counts_too):
    """The ratio of the new command to the old one, and the compared figure: CPU time or instructions."""
    times = {"old": [], "new": []}
    for _ in range(ROUNDS):
        times["old"].append(run(old))
        times["new"].append(run(new))
    (first, second), (new_first, new_second) = (sorted(times[name])[:2] for name in ("old", "new"))
    ratio = new_first / max(first, 1e-3)
    is_noisy = second > first * NOISE or new_second > new_first * NOISE
    if not counts_too or (ratio <= LIMIT and not is_noisy):
        return ratio, "CPU time"
    counts = [instructions(command + ["-j", "1"]) for command in (old, new)]
    if None in counts:
        return ratio, "CPU time"
    # Steady times decide only if the instructions did not grow: the same instructions may take longer.
    counted = counts[1] / counts[0]
    if is_noisy or counted > LIMIT:
        return counted, "instructions"
    return ratio, "CPU time"


def main():
    binaries = [word for word in sys.argv[1:] if word != "--time"]
    if len(binaries) != 2:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    slower = measured = 0
    for file, arguments in ROWS:
        path = f"{file}.data"
        if not os.path.exists(path):
            continue
        measured += 1
        commands = ([binary] + arguments.split() + ["-i", path] for binary in binaries)
        ratio, unit = compare(*commands, counts_too="--time" not in sys.argv)
        verdict = "slower" if ratio > LIMIT else "ok"
        slower += ratio > LIMIT
        print(f"{ratio:5.2f} {verdict:6} {arguments}, {file} ({unit})", flush=True)
    if not measured:
        print("gate: there is no fp.data, tp.data or dwarf.data here", file=sys.stderr)
        sys.exit(2)
    sys.exit(1 if slower else 0)


if __name__ == "__main__":
    main()

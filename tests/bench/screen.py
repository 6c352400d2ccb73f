#!/usr/bin/env python3
"""Measures the browser of `report`: time to the first rows, to all rows, and from a key press to the next screen.

    tests/bench/screen.py RPERF PERF.DATA
"""
import statistics
import subprocess
import sys
import time

SOCKET = "rperf-screen"
LIMIT = 60


def tmux(*words):
    return subprocess.run(["tmux", "-L", SOCKET, *words], capture_output=True, text=True, check=False).stdout


def screen():
    return tmux("capture-pane", "-e", "-p")


def until(start, is_match):
    """Seconds from `start` until the screen matches; LIMIT if it does not within that time."""
    while time.time() - start < LIMIT:
        if is_match(screen()):
            return time.time() - start
        time.sleep(0.01)
    return LIMIT


def main():
    rperf, recording = sys.argv[1:3]
    start = time.time()
    command = f"env PERF_CONFIG=/dev/null {rperf} report -i {recording}; sleep 100"
    tmux("-f", "/dev/null", "-u", "new-session", "-d", "-x", "200", "-y", "60", command)
    first = until(start, lambda text: "[.]" in text or "[k]" in text)
    whole = until(start, lambda text: "Tip:" in text)
    print(f"first rows {first:.2f} s, all {whole:.2f} s")
    times = []
    for key in ["Down"] * 20 + ["Up"] * 20:
        before, start = screen(), time.time()
        tmux("send-keys", key)
        times.append(until(start, lambda text, before=before: text != before))
    start = time.time()
    screen()
    capture_millis = (time.time() - start) * 1000
    print(f"key to screen: median {statistics.median(times) * 1000:.0f} ms, of which {capture_millis:.0f} ms to read the screen")


try:
    main()
finally:
    tmux("kill-server")

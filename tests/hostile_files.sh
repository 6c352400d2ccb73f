#!/bin/sh
# Runs the tests of hostile links, FIFOs and devices on a release build, as root (the tests also switch to an ordinary
# user), with the kernel's own protections off and on. It changes fs.protected_* of this machine while it runs.
set -eu
cd "$(dirname "$0")/.."
[ "$(id -u)" = 0 ] || { echo "error: this needs root" >&2; exit 1; }

settings="protected_fifos protected_hardlinks protected_regular protected_symlinks"
before=""
for setting in $settings; do
    before="$before fs.$setting=$(cat "/proc/sys/fs/$setting")"
done
# shellcheck disable=SC2064,SC2086 # the values are expanded now, to a list of words
trap "sysctl -q -w $before" EXIT
trap 'exit 130' INT TERM

for value in 0 1; do
    for setting in $settings; do
        sysctl -q -w "fs.$setting=$value"
    done
    echo "==> fs.protected_* at $value" >&2
    cargo test --release --test main --quiet hostile_files
done

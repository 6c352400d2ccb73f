#!/bin/sh
# Installs rperf with its manual pages and shell completions, and prints the path of each file:
#
#     cargo build --release && sh examples/install.sh [PREFIX]
#
# PREFIX is /usr/local by default. For packages, DESTDIR is prepended to all paths, RPERF names another binary than
# target/release/rperf (it must run on this machine), and STRIP=1 strips debug information.
set -eu
umask 022
top=$(dirname "$0")/..

fail() {
    echo "error: $1" >&2
    echo "hint: $2" >&2
    exit 1
}

prefix=${1:-/usr/local}
binary=${RPERF:-${CARGO_TARGET_DIR:-$top/target}/release/rperf}
case $prefix in
/*) ;;
*) fail "PREFIX '$prefix' is not an absolute path" "sh examples/install.sh /usr/local" ;;
esac
[ -x "$binary" ] || fail "$binary is not a program" "build it first: cargo build --release"

root=${DESTDIR:-}$prefix
share=$root/share
# The pages and scripts are for rperf, whatever the name of the binary.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
case $binary in
/*) ln -s "$binary" "$work/rperf" ;;
*) ln -s "$PWD/$binary" "$work/rperf" ;;
esac
"$work/rperf" help --man "$work/man1"

# place MODE FILE TARGET
place() {
    install -D -m "$1" ${strip:+-s} "$2" "$3"
    echo "$3"
}

strip=${STRIP:-}
place 755 "$binary" "$root/bin/rperf"
strip=
for page in "$work"/man1/*.1; do
    place 644 "$page" "$share/man/man1/${page##*/}"
done
for shell in bash zsh fish; do
    "$work/rperf" completion "$shell" >"$work/$shell"
done
place 644 "$work/bash" "$share/bash-completion/completions/rperf"
place 644 "$work/zsh" "$share/zsh/site-functions/_rperf"
place 644 "$work/fish" "$share/fish/vendor_completions.d/rperf.fish"
place 644 "$top/LICENSE" "$share/doc/rperf/LICENSE"

#!/bin/sh
# boot.sh MACHINE GUEST PAYLOAD OUT: boots the guest made by fetch.sh in GUEST on an emulated MACHINE (x86_64 or
# aarch64), runs PAYLOAD/run.sh in it, and copies the guest's /out to OUT, with log, status, dmesg and console. Exits
# with run.sh's status, with 125 if the guest did not finish, or with 2 for an unknown MACHINE.
# CPUS, MEMORY (MiB), MODEL (of the CPU) and LIMIT (seconds) may be set; further arguments are passed to qemu.
set -eu
machine=$1 guest=$2 payload=$3 out=$4
shift 4

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The kernel unpacks concatenated archives: the payload is appended to the guest's own.
mkdir "$work/tree"
cp -rL "$payload" "$work/tree/payload"
cp "$guest/initrd.gz" "$work/initrd"
(cd "$work/tree" && find . | cpio -o -H newc --quiet) | gzip -1 >>"$work/initrd"
truncate -s 512M "$work/result"

# Always emulated: nested virtualisation is not reliable.
case $machine in
x86_64)
    set -- -cpu "${MODEL:-max}" "$@"
    # Early in its start this kernel checks for some milliseconds that the timer interrupts it, and panics if not: on a busy
    # machine the emulated timer may be that late.
    console="ttyS0 no_timer_check"
    ;;
aarch64)
    set -- -M virt,gic-version=3 -cpu "${MODEL:-max,pauth-impdef=on}" "$@"
    console=ttyAMA0
    ;;
*)
    echo "no guest of this kind: $machine" >&2
    exit 2
    ;;
esac
timeout "${LIMIT:-900}" "qemu-system-$machine" -accel tcg -m "${MEMORY:-1024}" -smp "${CPUS:-2}" \
    -kernel "$guest/kernel" -initrd "$work/initrd" -append "console=$console panic=-1 quiet" \
    -drive "file=$work/result,if=none,id=result,format=raw" -device nvme,drive=result,serial=result \
    -nographic -no-reboot -net none "$@" </dev/null >"$work/console" 2>&1 || true

rm -rf "$out"
mkdir -p "$out"
tar xf "$work/result" -C "$out" 2>/dev/null || true
cp "$work/console" "$out/console"
if [ ! -e "$out/status" ]; then
    echo "the guest did not come to an end; its last lines:" >&2
    tail -n 20 "$out/console" >&2
    exit 125
fi
exit "$(cat "$out/status")"

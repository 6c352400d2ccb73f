#!/bin/sh
# fetch.sh ARCH DIR: makes DIR/kernel and DIR/initrd.gz, a small Linux with perf for a test guest, from Debian packages.
# ARCH is amd64 or arm64. Uses the mirrors configured on this machine; its packages and apt's state are not changed.
# Needs apt-get, dpkg-deb, cpio, gzip, busybox. Does nothing if DIR is complete.
# With FAKEPMU=DIRECTORY (source of a kernel module) the amd64 guest gets DIR/fakepmu.ko, which needs make and gcc.
set -eu
arch=$1
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$2"
dir=$(cd "$2" && pwd)
if [ -e "$dir/complete" ]; then exit 0; fi

work=$(mktemp -d "$dir/work.XXXXXX")
trap 'rm -rf "$work"' EXIT
state=$work/apt
tree=$work/tree
mkdir -p "$state/lists/partial" "$state/cache/archives/partial" "$state/etc" "$work/kernel"
: >"$state/status"

# One Debian mirror and one for its security updates, with the suite of this machine.
. /etc/os-release
for part in debian debian-security; do
    suite=$VERSION_CODENAME
    if [ "$part" = debian-security ]; then suite=$suite-security; fi
    mirror=$(grep -rhoE "https?://[^ ]*/$part/?( |\$)" /etc/apt/sources.list /etc/apt/sources.list.d 2>/dev/null |
        head -n 1 | tr -d ' ')
    if [ -z "$mirror" ]; then continue; fi
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main"
done >"$state/etc/sources.list"

apt() {
    program=$1
    shift
    "$program" -q -o Dir::State="$state" -o Dir::State::status="$state/status" -o Dir::Cache="$state/cache" \
        -o Dir::Etc::sourcelist="$state/etc/sources.list" -o Dir::Etc::sourceparts=/dev/null \
        -o APT::Architecture="$arch" -o APT::Architectures="$arch" -o APT::Sandbox::User=root \
        -o Acquire::Languages=none -o Acquire::Retries=3 "$@"
}

apt apt-get update >"$work/log"

# The metapackage depends on the newest kernel. The cloud flavour has NVMe built in, so no module is needed.
image=$(apt apt-cache depends "linux-image-cloud-$arch" | sed -n 's/.*Depends: \(linux-image-[0-9].*\)/\1/p' | head -n 1)
version=${image#linux-image-}
packages=$image
if [ -n "${FAKEPMU:-}" ] && [ "$arch" = amd64 ]; then
    tools=$(apt apt-cache depends "linux-headers-$version" | sed -n 's/.*Depends: \(linux-kbuild.*\)/\1/p')
    packages="$packages linux-headers-$version linux-headers-${version%-cloud-$arch}-common $tools"
fi
# shellcheck disable=SC2086 # a list of words
(cd "$work/kernel" && apt apt-get download $packages >>"$work/log")
dpkg-deb --fsys-tarfile "$work/kernel/$image"_*.deb | tar xO --wildcards './boot/vmlinuz-*' >"$dir/kernel"

if [ -n "${FAKEPMU:-}" ] && [ "$arch" = amd64 ]; then
    for package in "$work"/kernel/linux-headers-*.deb "$work"/kernel/linux-kbuild-*.deb; do
        dpkg-deb -x "$package" "$work/headers"
    done
    build=$work/headers/usr/src/linux-headers-$version
    sed -i "s#/usr/src/#$work/headers/usr/src/#" "$build/Makefile"
    cp -r "$FAKEPMU" "$work/fakepmu"
    make -s -C "$build" M="$work/fakepmu" CONFIG_DEBUG_INFO_BTF_MODULES= PAHOLE=true modules >>"$work/log" 2>&1
    cp "$work/fakepmu/fakepmu.ko" "$dir/"
fi

# With an empty status file apt resolves all dependencies of perf, down to the C library.
apt apt-get -y --no-install-recommends --download-only install linux-perf busybox-static >>"$work/log"
mkdir -p "$tree/usr/bin" "$tree/usr/sbin" "$tree/usr/lib"
for folder in proc sys dev tmp root run etc out payload; do mkdir "$tree/$folder"; done
for folder in bin sbin lib; do ln -s "usr/$folder" "$tree/$folder"; done
if [ "$arch" = amd64 ]; then
    mkdir "$tree/usr/lib64"
    ln -s usr/lib64 "$tree/lib64"
fi
for package in "$state"/cache/archives/*.deb; do
    dpkg-deb --fsys-tarfile "$package" | tar x -C "$tree" --keep-directory-symlink
done
rm -rf "$tree"/usr/share/doc "$tree"/usr/share/man "$tree"/usr/share/locale "$tree"/usr/share/info \
    "$tree"/usr/share/perl* "$tree"/usr/share/python3* "$tree"/usr/lib/python3* \
    "$tree"/usr/lib/*-linux-gnu/perl* "$tree"/usr/lib/*-linux-gnu/gconv
# The applets' names come from this machine's busybox: the guest's may be for another architecture.
busybox --list | grep -v '^busybox$' | while read -r applet; do
    if [ ! -e "$tree/usr/bin/$applet" ] && [ ! -e "$tree/usr/sbin/$applet" ]; then
        ln -s busybox "$tree/usr/bin/$applet"
    fi
done
echo 'root:x:0:0::/root:/bin/sh' >"$tree/etc/passwd"
install -m 755 "$here/init" "$tree/init"
(cd "$tree" && find . -print0 | cpio --null -o -H newc --quiet) | gzip -1 >"$dir/initrd.gz"
echo "$version" >"$dir/complete"

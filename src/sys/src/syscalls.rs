//! Numbers of system calls, from the kernel's `asm/unistd_64.h` and `asm-generic/unistd.h`.

/// `NUMBER NAME` lines of this machine's architecture; empty on architectures without a table.
const TABLE: &str = if cfg!(target_arch = "x86_64") {
    include_str!("syscalls/x86_64.txt")
} else if cfg!(target_arch = "aarch64") {
    include_str!("syscalls/aarch64.txt")
} else {
    ""
};

/// (Name of a kernel function without its prefix, system call that it implements) where the names differ. Tracepoints are named
/// after the functions.
const FUNCTIONS: [(&str, &str); 6] = [
    ("newfstat", "fstat"),
    ("newlstat", "lstat"),
    ("newstat", "stat"),
    ("newuname", "uname"),
    ("sendfile64", "sendfile"),
    ("umount", "umount2"),
];

/// Returns the number of a system call on this machine, by its name or by the name that its
/// tracepoints have (`newfstat` for `fstat`). `None` if it is unknown.
#[must_use]
pub fn syscall_number(name: &str) -> Option<u32> {
    let alias = FUNCTIONS.iter().find(|(function, _)| *function == name);
    let name = alias.map_or(name, |(_, call)| call);
    let mut calls = syscall_names();
    calls
        .find(|(_, listed)| *listed == name)
        .map(|(number, _)| number)
}

/// Numbers and names of the system calls of this machine's architecture; empty if it has no table.
pub fn syscall_names() -> impl Iterator<Item = (u32, &'static str)> {
    let lines = TABLE.lines().filter_map(|line| line.split_once(' '));
    lines.filter_map(|(number, name)| Some((number.parse().ok()?, name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_c_library() {
        for (name, number) in [
            ("read", libc::SYS_read),
            ("openat", libc::SYS_openat),
            ("newfstat", libc::SYS_fstat),
            ("newuname", libc::SYS_uname),
            ("umount", libc::SYS_umount2),
            ("perf_event_open", libc::SYS_perf_event_open),
            ("io_uring_setup", libc::SYS_io_uring_setup),
            ("clone3", libc::SYS_clone3),
        ] {
            assert_eq!(syscall_number(name).map(i64::from), Some(number), "{name}");
        }
        assert_eq!(syscall_number("nosuch"), None);
    }
}

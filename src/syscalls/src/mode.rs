//! Modes of files, by the names of linux/stat.h without `S_`.

/// Bits and their names. A name of several bits precedes the names of its parts.
const NAMES: [(u64, &str); 28] = [
    (0o7777, "IALLUGO"),
    (0o777, "IRWXUGO"),
    (0o444, "IRUGO"),
    (0o222, "IWUGO"),
    (0o111, "IXUGO"),
    (0o170000, "IFMT"),
    (0o140000, "IFSOCK"),
    (0o120000, "IFLNK"),
    (0o100000, "IFREG"),
    (0o60000, "IFBLK"),
    (0o40000, "IFDIR"),
    (0o20000, "IFCHR"),
    (0o10000, "IFIFO"),
    (0o4000, "ISUID"),
    (0o2000, "ISGID"),
    (0o1000, "ISVTX"),
    (0o700, "IRWXU"),
    (0o400, "IRUSR"),
    (0o200, "IWUSR"),
    (0o100, "IXUSR"),
    (0o70, "IRWXG"),
    (0o40, "IRGRP"),
    (0o20, "IWGRP"),
    (0o10, "IXGRP"),
    (0o7, "IRWXO"),
    (0o4, "IROTH"),
    (0o2, "IWOTH"),
    (0o1, "IXOTH"),
];

/// Returns the names of the bits of a mode, joined by `|`; empty for 0. Only the lower 16 bits count, as in the kernel's
/// `umode_t`; each of them has a name.
pub(crate) fn mode_text(mode: u64) -> String {
    let mut remaining = mode & 0xffff;
    let mut names: Vec<&str> = Vec::new();
    for (bits, name) in &NAMES {
        if remaining & bits == *bits {
            names.push(name);
            remaining &= !bits;
        }
    }
    names.join("|")
}

#[cfg(test)]
mod tests {
    use super::mode_text;

    #[test]
    fn modes_are_printed_by_name() {
        assert_eq!(mode_text(0o644), "IRUGO|IWUSR");
        assert_eq!(mode_text(0o755), "IRUGO|IXUGO|IWUSR");
        assert_eq!(mode_text(0o1777), "IRWXUGO|ISVTX");
        assert_eq!(mode_text(0o750), "IRWXU|IRGRP|IXGRP");
        assert_eq!(mode_text(0o37), "IWGRP|IXGRP|IRWXO");
        assert_eq!(mode_text(0o640), "IRUSR|IWUSR|IRGRP");
        assert_eq!(mode_text(0o20600), "IFCHR|IRUSR|IWUSR");
    }
}

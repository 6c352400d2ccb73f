//! Structures that newer kernels may extend. They are read with `short`, `int`, `word` and `long`, which return a number at an
//! offset: `short` one of 2 bytes, `int` a signed one of 4, `word` an unsigned one of 4, `long` one of 8.

use super::{int, long, short, timespec, word};
use crate::Abi;
use crate::arguments::open_flags;
use crate::constants::{self as names, files, policy_text, system};
use crate::mode::mode_text;

/// `struct clone_args` of any version, without fields that are 0; `None` if it is shorter than the first version.
pub(super) fn clone_arguments(bytes: &[u8]) -> Option<String> {
    // The last field of the first version, `tls`.
    long(bytes, 56)?;
    let members = [
        "flags",
        "pidfd",
        "child_tid",
        "parent_tid",
        "exit_signal",
        "stack",
        "stack_size",
        "tls",
        "set_tid",
        "set_tid_size",
        "cgroup",
    ];
    let values = members.into_iter().zip((0..).step_by(8));
    let named_values = values.map(|(name, at)| {
        let value = long(bytes, at).filter(|value| *value != 0);
        let text = value.map(|value| match name {
            "flags" => system::CLONE3.text(value),
            "exit_signal" => names::SIGNAL.text(value),
            "stack_size" | "set_tid_size" | "cgroup" => value.to_string(),
            _ => format!("{value:#x}"),
        });
        (name, text)
    });
    let named_values: Vec<(&str, Option<String>)> = named_values.collect();
    Some(fields(&named_values))
}

/// Returns `{ .field: value, .field: value }` without fields whose text is `None`; `{}` if there is none left.
fn fields(fields: &[(&str, Option<String>)]) -> String {
    let parts = fields.iter();
    let parts = parts.filter_map(|(name, text)| Some(format!(".{name}: {}", text.as_ref()?)));
    let parts: Vec<String> = parts.collect();
    match parts.is_empty() {
        true => "{}".to_owned(),
        false => format!("{{ {} }}", parts.join(", ")),
    }
}

/// Returns a number as text; `None` if it is 0.
fn non_zero(value: u64) -> Option<String> {
    (value != 0).then(|| value.to_string())
}

/// `struct open_how`. The values of the flags depend on the architecture.
pub(super) fn open_how(bytes: &[u8], abi: Abi) -> Option<String> {
    let (mode, resolve) = (long(bytes, 8)?, long(bytes, 16)?);
    Some(fields(&[
        ("flags", Some(open_flags(abi, long(bytes, 0)?))),
        ("mode", (mode != 0).then(|| mode_text(mode))),
        (
            "resolve",
            (resolve != 0).then(|| files::RESOLVE.text(resolve)),
        ),
    ]))
}

/// `struct mount_attr`.
pub(super) fn mount_attributes(bytes: &[u8]) -> Option<String> {
    // `None` if the memory is too short, `Some(None)` if no bit is set.
    let attributes = |at| {
        let bits = long(bytes, at)?;
        Some((bits != 0).then(|| files::MOUNT_ATTR_BITS.text(bits)))
    };
    let propagation = long(bytes, 16)?;
    Some(fields(&[
        ("attr_set", attributes(0)?),
        ("attr_clr", attributes(8)?),
        (
            "propagation",
            (propagation != 0).then(|| names::MOUNT.text(propagation)),
        ),
        ("userns_fd", non_zero(long(bytes, 24)?)),
    ]))
}

/// `struct sched_attr` of any version, without fields that are 0; `None` if it is shorter than the first version, which has 48
/// bytes.
pub(super) fn scheduling_attributes(bytes: &[u8]) -> Option<String> {
    let (policy, flags) = (word(bytes, 4)?, long(bytes, 8)?);
    let nice = int(bytes, 16)?;
    Some(fields(&[
        ("size", non_zero(word(bytes, 0)?)),
        ("sched_policy", (policy != 0).then(|| policy_text(policy))),
        (
            "sched_flags",
            (flags != 0).then(|| system::SCHED_FLAGS.text(flags)),
        ),
        ("sched_nice", (nice != 0).then(|| nice.to_string())),
        ("sched_priority", non_zero(word(bytes, 20)?)),
        ("sched_runtime", non_zero(long(bytes, 24)?)),
        ("sched_deadline", non_zero(long(bytes, 32)?)),
        ("sched_period", non_zero(long(bytes, 40)?)),
        ("sched_util_min", word(bytes, 48).and_then(non_zero)),
        ("sched_util_max", word(bytes, 52).and_then(non_zero)),
    ]))
}

/// The fields of `struct io_uring_params` that the caller sets, without those that are 0.
pub(super) fn ring_parameters(bytes: &[u8]) -> Option<String> {
    let flags = word(bytes, 8)?;
    Some(fields(&[
        ("cq_entries", non_zero(word(bytes, 4)?)),
        (
            "flags",
            (flags != 0).then(|| files::URING_SETUP.text(flags)),
        ),
        ("sq_thread_cpu", non_zero(word(bytes, 12)?)),
        ("sq_thread_idle", non_zero(word(bytes, 16)?)),
        ("wq_fd", non_zero(word(bytes, 24)?)),
    ]))
}

/// `struct futex_waitv[]`, of elements of 24 bytes; `...` at the end if `bytes` has fewer than `count`.
pub(super) fn futex_waiters(bytes: &[u8], count: u64) -> Option<String> {
    let (waiters, _) = bytes.as_chunks::<24>();
    let texts: Option<Vec<String>> = waiters
        .iter()
        .map(|waiter| {
            let (value, address) = (long(waiter, 0)?, long(waiter, 8)?);
            let flags = system::FUTEX2.text(word(waiter, 16)?);
            let flags = if flags.is_empty() { "0" } else { &flags };
            Some(format!(
                "{{ .val: {value}, .uaddr: {address:#x}, .flags: {flags} }}"
            ))
        })
        .collect();
    let more = if count > waiters.len() as u64 {
        ", ..."
    } else {
        ""
    };
    Some(format!("[{}{more}]", texts?.join(", ")))
}

/// `struct statx`: the mask of valid fields; the mode; the number of a device, or the size of any other file; the time of the
/// last modification, if it is valid.
pub(super) fn extended_stat(bytes: &[u8]) -> Option<String> {
    let (mask, mode) = (word(bytes, 0)?, u64::from(short(bytes, 28)?));
    let is_device = super::is_device(mode);
    let device = format!("{}:{}", word(bytes, 128)?, word(bytes, 132)?);
    let size = long(bytes, 40)?.to_string();
    let (seconds, nanos) = (long(bytes, 112)?, word(bytes, 120)?);
    // The nanoseconds of a `struct statx_timestamp` have 4 bytes, those of a `struct timespec` 8.
    let modified = timespec(&[seconds, nanos].map(u64::to_ne_bytes).concat())?;
    // STATX_MTIME.
    let has_modified = mask & 0x40 != 0;
    Some(fields(&[
        ("stx_mask", Some(names::STATX_MASK.text(mask))),
        ("stx_mode", Some(super::file_mode_text(mode))),
        ("stx_rdev", is_device.then_some(device)),
        ("stx_size", (!is_device).then_some(size)),
        ("stx_mtime", has_modified.then_some(modified)),
    ]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words of 8 bytes, unlike those of `word`.
    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn versions_of_clone_arguments() {
        let first = [0x1_0000_0100, 0, 0, 0, 17, 0, 0, 0];
        let expected = "{ .flags: VM|CLEAR_SIGHAND, .exit_signal: CHLD }";
        assert_eq!(clone_arguments(&words(&first)).as_deref(), Some(expected));
        assert_eq!(clone_arguments(&words(&first[..7])), None);
        assert_eq!(clone_arguments(&words(&[0; 8])).as_deref(), Some("{}"));
        let third = [&first[..], &[0, 0, 5]].concat();
        let expected = "{ .flags: VM|CLEAR_SIGHAND, .exit_signal: CHLD, .cgroup: 5 }";
        assert_eq!(clone_arguments(&words(&third)).as_deref(), Some(expected));
    }

    #[test]
    fn flags_have_names() {
        let how = open_how(&words(&[0o2000101, 0o600, 4]), Abi::X86_64);
        let expected =
            "{ .flags: CLOEXEC|CREAT|WRONLY, .mode: IRUSR|IWUSR, .resolve: NO_SYMLINKS }";
        assert_eq!(how.as_deref(), Some(expected));
        let attributes = mount_attributes(&words(&[1, 0x70, 1 << 18, 0]));
        let expected = "{ .attr_set: RDONLY, .attr_clr: _ATIME, .propagation: PRIVATE }";
        assert_eq!(attributes.as_deref(), Some(expected));
        let attributes = scheduling_attributes(&words(&[48 | 2 << 32, 1, 5 << 32, 0, 0, 0]));
        let expected =
            "{ .size: 48, .sched_policy: RR, .sched_flags: RESET_ON_FORK, .sched_priority: 5 }";
        assert_eq!(attributes.as_deref(), Some(expected));
        let waiters = futex_waiters(&words(&[5, 0x10, 0x82]), 2);
        let expected = "[{ .val: 5, .uaddr: 0x10, .flags: SIZE_U32|PRIVATE }, ...]";
        assert_eq!(waiters.as_deref(), Some(expected));
        let mut ring = [0; 120];
        ring[8] = 2;
        ring[16] = 9;
        let expected = "{ .flags: SQPOLL, .sq_thread_idle: 9 }";
        assert_eq!(ring_parameters(&ring).as_deref(), Some(expected));
    }

    #[test]
    fn the_extended_stat_of_files_and_devices() {
        let mut stat = [0_u8; 256];
        stat[..4].copy_from_slice(&3_u32.to_ne_bytes());
        stat[28..30].copy_from_slice(&0o100644_u16.to_ne_bytes());
        stat[40..48].copy_from_slice(&9_u64.to_ne_bytes());
        let expected = "{ .stx_mask: TYPE|MODE, .stx_mode: IFREG|IRUGO|IWUSR, .stx_size: 9 }";
        assert_eq!(extended_stat(&stat).as_deref(), Some(expected));
        stat[28..30].copy_from_slice(&0o20600_u16.to_ne_bytes());
        stat[128..132].copy_from_slice(&1_u32.to_ne_bytes());
        stat[132..136].copy_from_slice(&3_u32.to_ne_bytes());
        let expected = "{ .stx_mask: TYPE|MODE, .stx_mode: IFCHR|IRUSR|IWUSR, .stx_rdev: 1:3 }";
        assert_eq!(extended_stat(&stat).as_deref(), Some(expected));
    }
}

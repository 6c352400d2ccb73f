//! Structures in memory as text: `{ .field: value, .field: value }`.
//!
//! Layouts are those of 64-bit programs in the kernel's uapi headers, in the byte order of the machine that this runs on.

mod extensible;
mod lists;
mod signals;

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::capture::{epoll_event_size, points_to_length};
use crate::constants as names;
use crate::kernel_structures::{structure_name, zero_beyond_size};
use crate::mode::mode_text;
use crate::{Abi, Argument, ArgumentKind, CallArguments, CapturedBytes, write_buffer};
use extensible::{clone_arguments, extended_stat, open_how};
use signals::{signal_action, signal_set};

/// Returns the text of a structure; `None` if its layout is not known here or the memory is too short.
pub(crate) fn structure(
    call: &CallArguments<'_>,
    argument: &Argument,
    captured: &CapturedBytes<'_>,
) -> Option<String> {
    let bytes = captured.bytes;
    if argument.kind == ArgumentKind::SocketAddress {
        return socket_address(bytes, captured.is_truncated);
    }
    if points_to_length(call.name(), argument.name) {
        return pointed_length(call, captured);
    }
    match (call.name(), argument.name) {
        ("utimensat", "utimes") => {
            let (access, modification) = bytes.split_at_checked(16)?;
            let (access, modification) = (timespec(access)?, timespec(modification)?);
            Some(format!("[{access}, {modification}]"))
        }
        ("stat" | "fstat" | "lstat" | "newfstatat", "statbuf") => stat(call.abi, bytes),
        ("pipe" | "pipe2", "fildes") | ("socketpair", "usockvec") => {
            Some(format!("[{}, {}]", int(bytes, 0)?, int(bytes, 4)?))
        }
        ("poll" | "ppoll", "ufds") => poll_set(bytes, call.named("nfds")),
        ("epoll_ctl", "event") => epoll_event(call.abi, bytes),
        ("epoll_wait" | "epoll_pwait" | "epoll_pwait2", "events") => {
            let events = bytes.chunks_exact(epoll_event_size(call.abi) as usize);
            let events: Option<Vec<String>> =
                events.map(|event| epoll_event(call.abi, event)).collect();
            let more = if captured.is_truncated { ", ..." } else { "" };
            Some(format!("[{}{more}]", events?.join(", ")))
        }
        ("rt_sigaction", "act" | "oact") => signal_action(call.abi, bytes),
        (_, "rlim" | "new_rlim" | "old_rlim") => {
            let (soft, hard) = (limit(long(bytes, 0)?), limit(long(bytes, 8)?));
            Some(format!("{{ .rlim_cur: {soft}, .rlim_max: {hard} }}"))
        }
        ("wait4" | "waitpid", "stat_addr") => Some(wait_status(int(bytes, 0)?)),
        ("setsockopt", "optval") if call.named("optlen") == 4 => {
            Some(format!("[{}]", int(bytes, 0)?))
        }
        ("getsockopt", "optval") if bytes.len() == 4 => Some(format!("[{}]", int(bytes, 0)?)),
        ("clone3", "uargs") => clone_arguments(bytes),
        _ if argument.c_type.contains("timespec") => timespec(bytes),
        _ if argument.c_type.contains("sigset_t") => Some(signal_set(long(bytes, 0)?)),
        _ => other_structure(call, argument, captured).or_else(|| {
            // What is beyond the size that the program gave counts as 0.
            let bytes = zero_beyond_size(structure_name(argument)?, call, bytes);
            extensible_structure(call, argument, &bytes)
        }),
    }
}

/// Returns the text of a structure of signals, a list of numbers, a mask, the waiters of futex_waitv(2), a file offset or a pair
/// of `struct timeval`.
fn other_structure(
    call: &CallArguments<'_>,
    argument: &Argument,
    captured: &CapturedBytes<'_>,
) -> Option<String> {
    let bytes = captured.bytes;
    match (call.name(), argument.name) {
        (_, "uinfo" | "infop") | ("pidfd_send_signal", "info") => {
            signals::signal_information(bytes)
        }
        ("sigaltstack", _) => signals::signal_stack(bytes),
        ("timer_create", "timer_event_spec") | ("mq_notify", _) => signals::signal_event(bytes),
        ("timer_create", "created_timer_id")
        | ("getresuid" | "getresgid" | "getcpu" | "getgroups" | "setgroups", _) => {
            lists::numbers(bytes, captured.is_truncated)
        }
        ("sched_setaffinity" | "sched_getaffinity", _) => {
            Some(lists::cpus(bytes, captured.is_truncated))
        }
        (_, "nmask" | "old_nodes" | "new_nodes") => lists::nodes(bytes, call.named("maxnode")),
        ("futex_waitv", "waiters") => extensible::futex_waiters(bytes, call.named("nr_futexes")),
        (_, "off_in" | "off_out" | "offset") => lists::offset(bytes),
        ("utimes" | "futimesat", "utimes") => {
            let (access, modification) = bytes.split_at_checked(16)?;
            let (access, modification) = (timeval(access)?, timeval(modification)?);
            Some(format!("[{access}, {modification}]"))
        }
        _ => None,
    }
}

/// Returns the text of a structure that new kernels may extend.
fn extensible_structure(
    call: &CallArguments<'_>,
    argument: &Argument,
    bytes: &[u8],
) -> Option<String> {
    match (call.name(), argument.name) {
        ("openat2", "how") => open_how(bytes, call.abi),
        ("mount_setattr" | "open_tree_attr", "uattr") => extensible::mount_attributes(bytes),
        ("sched_setattr" | "sched_getattr", "uattr") => extensible::scheduling_attributes(bytes),
        ("io_uring_setup", "params") => extensible::ring_parameters(bytes),
        ("statx", "buffer") => extended_stat(bytes),
        _ => None,
    }
}

/// Reads a number of 2 bytes.
fn short(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u16::from_ne_bytes(*bytes))
}

/// Reads a signed number of 4 bytes.
fn int(bytes: &[u8], at: usize) -> Option<i32> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(i32::from_ne_bytes(*bytes))
}

/// Reads an unsigned number of 4 bytes.
fn word(bytes: &[u8], at: usize) -> Option<u64> {
    int(bytes, at).map(|number| u64::from(number.cast_unsigned()))
}

/// Reads a number of 8 bytes.
fn long(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u64::from_ne_bytes(*bytes))
}

/// Returns the size of a buffer as `[before]`, or `[before => after]` if the kernel changed it.
fn pointed_length(call: &CallArguments<'_>, captured: &CapturedBytes<'_>) -> Option<String> {
    let before = int(captured.bytes, 0)?;
    // `captured` is the first readable copy, usually made when the call began. The last one was made when the call returned, or
    // is `captured` itself.
    let sizes = call.captured.iter().rev();
    let mut sizes = sizes.filter(|one| one.argument == captured.argument && !one.is_unreadable);
    let after = int(sizes.next()?.bytes, 0)?;
    Some(match before == after {
        true => format!("[{before}]"),
        false => format!("[{before} => {after}]"),
    })
}

const AF_LOCAL: u16 = 1;
const AF_INET: u16 = 2;
const AF_INET6: u16 = 10;

/// Returns the text of a `struct sockaddr`; `None` if it is too short. Of an address of an unknown family, only the family is
/// printed.
pub(crate) fn socket_address(bytes: &[u8], is_truncated: bool) -> Option<String> {
    let family = short(bytes, 0)?;
    let other_fields = match family {
        // A socket without a name.
        AF_LOCAL if bytes.len() == 2 => String::new(),
        AF_LOCAL => {
            let path = bytes.get(2..)?;
            let mut text = Vec::new();
            // An abstract name begins with a NUL, and extends to the end of the address.
            let (sign, name) = match path.split_first() {
                Some((0, name)) if !name.is_empty() => ("@", name),
                _ => ("", path.split(|byte| *byte == 0).next().unwrap_or_default()),
            };
            // The path is truncated only if it extends to the end of `bytes`: if a NUL ends it, all of it is there. The length
            // of `sign` is that of the NUL that it replaces.
            let is_path_truncated = is_truncated && 2 + sign.len() + name.len() == bytes.len();
            write_buffer(&mut text, name, is_path_truncated).ok()?;
            format!(", path: {sign}{}", String::from_utf8_lossy(&text))
        }
        AF_INET => {
            let (_, rest) = bytes.split_at_checked(2)?;
            let (port, rest) = rest.split_first_chunk::<2>()?;
            let address = Ipv4Addr::from(*rest.first_chunk::<4>()?);
            let port = u16::from_be_bytes(*port);
            format!(", port: {port}, addr: {address}")
        }
        AF_INET6 => {
            let (_, rest) = bytes.split_at_checked(2)?;
            let (port, rest) = rest.split_first_chunk::<2>()?;
            let (flow, rest) = rest.split_first_chunk::<4>()?;
            let (address, rest) = rest.split_first_chunk::<16>()?;
            let mut text = format!(
                ", port: {}, addr: {}",
                u16::from_be_bytes(*port),
                Ipv6Addr::from(*address)
            );
            if *flow != [0; 4] {
                text.push_str(&format!(", flowinfo: {}", u32::from_be_bytes(*flow)));
            }
            match rest.first_chunk().map(|scope| u32::from_ne_bytes(*scope)) {
                None | Some(0) => {}
                Some(scope) => text.push_str(&format!(", scope_id: {scope}")),
            }
            text
        }
        _ => String::new(),
    };
    let family = names::FAMILY.text(family.into());
    Some(format!("{{ .family: {family}{other_fields} }}"))
}

/// The last fields of `struct user_msghdr`.
#[derive(Debug, Default)]
pub(crate) struct MessageEnd {
    /// The size of the control data in bytes.
    pub(crate) control_size: u64,
    pub(crate) flags: u64,
}

impl MessageEnd {
    /// Reads the fields. Those after the end of `header` are 0.
    pub(crate) fn of(header: &[u8]) -> Self {
        Self {
            control_size: long(header, 40).unwrap_or_default(),
            flags: word(header, 48).unwrap_or_default(),
        }
    }
}

/// Returns the peer's address: `address:port` of IP, the path of a local socket, otherwise the name of the family. `None` if the
/// bytes are too short, or a local socket has no path.
pub(crate) fn peer(bytes: &[u8]) -> Option<String> {
    let family = short(bytes, 0)?;
    let port = || {
        let port = bytes.get(2..)?.first_chunk()?;
        Some(u16::from_be_bytes(*port))
    };
    match family {
        AF_INET => {
            let address = Ipv4Addr::from(*bytes.get(4..)?.first_chunk::<4>()?);
            Some(format!("{address}:{}", port()?))
        }
        AF_INET6 => {
            let address = Ipv6Addr::from(*bytes.get(8..)?.first_chunk::<16>()?);
            Some(format!("[{address}]:{}", port()?))
        }
        AF_LOCAL => {
            // A truncated path gets no `...` here.
            let is_truncated = false;
            let text = socket_address(bytes, is_truncated)?;
            let path = text.split_once("path: ")?.1.strip_suffix(" }")?;
            (!path.is_empty()).then(|| path.to_owned())
        }
        family => Some(names::FAMILY.text(family.into())),
    }
}

/// `struct timespec`.
fn timespec(bytes: &[u8]) -> Option<String> {
    let (seconds, nanos) = (long(bytes, 0)?.cast_signed(), long(bytes, 8)?.cast_signed());
    Some(format!("{{ .tv_sec: {seconds}, .tv_nsec: {nanos} }}"))
}

/// `struct timeval`.
fn timeval(bytes: &[u8]) -> Option<String> {
    let (seconds, micros) = (long(bytes, 0)?.cast_signed(), long(bytes, 8)?.cast_signed());
    Some(format!("{{ .tv_sec: {seconds}, .tv_usec: {micros} }}"))
}

/// The bits of a mode that are the type of the file.
const S_IFMT: u64 = 0o170000;
const S_IFCHR: u64 = 0o20000;
const S_IFBLK: u64 = 0o60000;

/// Whether this is the mode of a character or block device.
fn is_device(mode: u64) -> bool {
    matches!(mode & S_IFMT, S_IFCHR | S_IFBLK)
}

/// Returns a mode as the type of the file, then its permissions.
fn file_mode_text(mode: u64) -> String {
    match mode & 0o7777 {
        0 => mode_text(mode),
        permissions => format!("{}|{}", mode_text(mode & S_IFMT), mode_text(permissions)),
    }
}

/// Returns a device number as `major:minor`.
pub(crate) fn device_text(device: u64) -> String {
    let major = (device >> 8) & 0xfff | (device >> 32) & !0xfff;
    let minor = device & 0xff | (device >> 12) & !0xff;
    format!("{major}:{minor}")
}

/// `struct stat`: the mode; then the number (`st_rdev`) of a device, or the size of any other file. `None` if the layout of this
/// ABI is not known here.
fn stat(abi: Abi, bytes: &[u8]) -> Option<String> {
    let (mode, device) = match abi {
        Abi::X86_64 => (word(bytes, 24)?, long(bytes, 40)?),
        Abi::Arm64 | Abi::Riscv64 => (word(bytes, 16)?, long(bytes, 32)?),
        Abi::I386 => return None,
    };
    let size = long(bytes, 48)?;
    let mode_text = file_mode_text(mode);
    Some(match is_device(mode) {
        true => {
            let device = device_text(device);
            format!("{{ .st_mode: {mode_text}, .st_rdev: {device} }}")
        }
        false => format!("{{ .st_mode: {mode_text}, .st_size: {size} }}"),
    })
}

/// `struct pollfd[]`; `...` at the end if `bytes` has fewer elements than `count`.
fn poll_set(bytes: &[u8], count: u64) -> Option<String> {
    let (entries, _) = bytes.as_chunks::<8>();
    let texts: Option<Vec<String>> = entries
        .iter()
        .map(|entry| {
            let events = poll_events(short(entry, 4)?.into());
            Some(format!("{{ .fd: {}, .events: {events} }}", int(entry, 0)?))
        })
        .collect();
    let more = match (count as usize) > entries.len() {
        true => ", ...",
        false => "",
    };
    Some(format!("[{}{more}]", texts?.join(", ")))
}

fn poll_events(bits: u64) -> String {
    match bits {
        0 => "0".to_owned(),
        _ => names::POLL.text(bits),
    }
}

/// `struct epoll_event`.
fn epoll_event(abi: Abi, bytes: &[u8]) -> Option<String> {
    let events = poll_events(word(bytes, 0)?);
    // The last member, after padding except on x86.
    let data = long(bytes, epoll_event_size(abi) as usize - size_of::<u64>())?;
    Some(format!("{{ .events: {events}, .data: {data:#x} }}"))
}

/// A limit in `struct rlimit64`.
fn limit(value: u64) -> String {
    match value {
        u64::MAX => "INFINITY".to_owned(),
        _ => value.to_string(),
    }
}

/// The state of a child, as wait4(2) writes it.
fn wait_status(status: i32) -> String {
    let signal = |number: i32| names::SIGNAL.text(u64::from(number.cast_unsigned()));
    // The lower 7 bits are 0 after an exit, 0x7f if the child has stopped or continued, otherwise the signal that killed it.
    match (status & 0x7f, status >> 8 & 0xff) {
        (0, code) => format!("{{ .exited: {code} }}"),
        (0x7f, 0xff) => "{ .continued: CONT }".to_owned(),
        (0x7f, number) => format!("{{ .stopped: {} }}", signal(number)),
        (number, _) => format!("{{ .signaled: {} }}", signal(number)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn socket_addresses_are_decoded() {
        let mut inet = 2u16.to_ne_bytes().to_vec();
        inet.extend([0, 53, 127, 0, 0, 1]);
        let expected = "{ .family: INET, port: 53, addr: 127.0.0.1 }";
        assert_eq!(socket_address(&inet, false).as_deref(), Some(expected));
        assert_eq!(socket_address(&inet[..7], false), None);
        let is_truncated = true;
        let local = |path: &[u8]| {
            let address = [&1u16.to_ne_bytes(), path].concat();
            socket_address(&address, is_truncated)
        };
        // `\10` is the newline, in decimal as in perf. The NUL ends the path, so `...` does not follow.
        let expected = "{ .family: LOCAL, path: /run/x\\10 }";
        assert_eq!(local(b"/run/x\n\0junk").as_deref(), Some(expected));
        let expected = "{ .family: LOCAL, path: @a\\0b... }";
        assert_eq!(local(b"\0a\0b").as_deref(), Some(expected));
        assert_eq!(local(b"").as_deref(), Some("{ .family: LOCAL }"));
        let mut inet6 = 10u16.to_ne_bytes().to_vec();
        inet6.extend([0, 80, 0, 0, 0, 0]);
        inet6.extend(Ipv6Addr::LOCALHOST.octets());
        inet6.extend(3_u32.to_ne_bytes());
        let expected = "{ .family: INET6, port: 80, addr: ::1, scope_id: 3 }";
        assert_eq!(socket_address(&inet6, false).as_deref(), Some(expected));
    }

    #[test]
    fn sets_limits_and_states_are_printed() {
        assert_eq!(signal_set(1 << 1 | 1 << 16), "[INT, CHLD]");
        assert_eq!(signal_set(!(1 << 8)), "~[KILL]");
        assert_eq!(signal_set(3 << 31), "[RTMIN, RTMIN+1]");
        assert_eq!(limit(u64::MAX), "INFINITY");
        assert_eq!(wait_status(3 << 8), "{ .exited: 3 }");
        assert_eq!(wait_status(9), "{ .signaled: KILL }");
        assert_eq!(wait_status(19 << 8 | 0x7f), "{ .stopped: STOP }");
        assert_eq!(wait_status(0xffff), "{ .continued: CONT }");
        let set = [3_u32.to_ne_bytes(), [1, 0, 0, 0]].concat();
        assert_eq!(
            poll_set(&set, 2).as_deref(),
            Some("[{ .fd: 3, .events: IN }, ...]")
        );
        assert_eq!(
            poll_set(&[0; 8], 1).as_deref(),
            Some("[{ .fd: 0, .events: 0 }]")
        );
    }

    #[test]
    fn layouts_are_those_of_the_architecture() {
        let words = |words: &[u32]| {
            let bytes = words.iter().flat_map(|word| word.to_ne_bytes());
            bytes.collect::<Vec<u8>>()
        };
        let expected = "{ .events: IN, .data: 0x7 }";
        let packed = epoll_event(Abi::X86_64, &words(&[1, 7, 0]));
        assert_eq!(packed.as_deref(), Some(expected));
        let aligned = words(&[1, 9, 7, 0]);
        let aligned = epoll_event(Abi::Arm64, &aligned);
        assert_eq!(aligned.as_deref(), Some(expected));
        let expected = "{ .sa_handler: IGN, .sa_flags: 0, .sa_mask: [INT] }";
        let with_restorer = words(&[1, 0, 0, 0, 9, 9, 2, 0]);
        for abi in [Abi::X86_64, Abi::Arm64] {
            let action = signal_action(abi, &with_restorer);
            assert_eq!(action.as_deref(), Some(expected));
        }
        let action = signal_action(Abi::Riscv64, &words(&[1, 0, 0, 0, 2, 0]));
        assert_eq!(action.as_deref(), Some(expected));
    }
}

//! Structures of signals.

use super::{int, long, word};
use crate::Abi;
use crate::constants::{self as names, system};

/// The kernel's `struct sigaction` of 64-bit programs; the field `sa_restorer` is not shown.
pub(super) fn signal_action(abi: Abi, bytes: &[u8]) -> Option<String> {
    let mask_offset = match abi {
        Abi::X86_64 | Abi::Arm64 => 24,
        // The structure has no `sa_restorer`.
        Abi::Riscv64 => 16,
        Abi::I386 => return None,
    };
    let handler = match long(bytes, 0)? {
        0 => "DFL".to_owned(),
        1 => "IGN".to_owned(),
        address => format!("{address:#x}"),
    };
    let flags = names::SIGNAL_ACTION.text(long(bytes, 8)?);
    let flags = if flags.is_empty() { "0" } else { &flags };
    let mask = signal_set(long(bytes, mask_offset)?);
    Some(format!(
        "{{ .sa_handler: {handler}, .sa_flags: {flags}, .sa_mask: {mask} }}"
    ))
}

/// `sigset_t` of 64 signals: `[INT, CHLD]`; if more than half are in the set, the signals that are not: `~[KILL]`.
pub(super) fn signal_set(bits: u64) -> String {
    let is_inverted = bits.count_ones() > 32;
    let listed = if is_inverted { !bits } else { bits };
    let signals = (0..64_u64).filter(|bit| listed >> bit & 1 == 1);
    // Bit 0 is signal 1. `RTMIN` is the kernel's (32); that of the C library, which reserves the first ones, is higher.
    let name = |bit| match bit {
        0..31 => names::SIGNAL.text(bit + 1),
        31 => "RTMIN".to_owned(),
        _ => format!("RTMIN+{}", bit - 31),
    };
    let signals: Vec<String> = signals.map(name).collect();
    let sign = if is_inverted { "~" } else { "" };
    format!("{sign}[{}]", signals.join(", "))
}

/// `siginfo_t`: the signal and its code; of SIGCHLD, the child and its state; of a signal sent by a process, the sender and
/// the value that it passed, if any; of a fault, the address.
pub(super) fn signal_information(bytes: &[u8]) -> Option<String> {
    let (signal, code) = (word(bytes, 0)?, word(bytes, 8)?);
    // waitid(2) with WNOHANG, without a child whose state has changed.
    if signal == 0 {
        return Some("{}".to_owned());
    }
    // SIGCHLD with a code of CLD_*.
    let is_child = signal == 17 && (1..=6).contains(&code);
    let code_text = match is_child {
        true => system::CHILD_CODE.text(code),
        false => system::SIGNAL_CODE.text(code),
    };
    let mut text = format!(
        "{{ .si_signo: {}, .si_code: {code_text}",
        names::SIGNAL.text(signal)
    );
    // Like the kernel's `SI_FROMUSER`: SI_USER, or a negative code.
    let is_from_user = code == 0 || code > u64::from(u32::MAX / 2);
    // SI_TIMER has a timer's id in place of the sender.
    let has_sender = is_from_user && code != 0xffff_fffe;
    if has_sender || is_child {
        let (sender, user) = (int(bytes, 16)?, word(bytes, 20)?);
        text.push_str(&format!(", .si_pid: {sender}, .si_uid: {user}"));
    }
    let value = long(bytes, 24)?;
    // SIGILL, SIGTRAP, SIGBUS, SIGFPE or SIGSEGV, sent by the kernel.
    let is_fault = matches!(signal, 4 | 5 | 7 | 8 | 11) && !is_from_user;
    match (is_child, code) {
        // With CLD_EXITED, `si_status` is the exit code; with the other codes of a child, a signal.
        (true, 1) => text.push_str(&format!(", .si_status: {}", int(bytes, 24)?)),
        (true, _) => {
            let status = names::SIGNAL.text(word(bytes, 24)?);
            text.push_str(&format!(", .si_status: {status}"));
        }
        // SI_QUEUE: the sender has passed a value.
        (_, 0xffff_ffff) if value != 0 => text.push_str(&format!(", .si_value: {value:#x}")),
        _ if is_fault => text.push_str(&format!(", .si_addr: {:#x}", long(bytes, 16)?)),
        _ => {}
    }
    text.push_str(" }");
    Some(text)
}

/// `stack_t`.
pub(super) fn signal_stack(bytes: &[u8]) -> Option<String> {
    let (address, size) = (long(bytes, 0)?, long(bytes, 16)?);
    let flags = system::SIGNAL_STACK.text(word(bytes, 8)?);
    let flags = if flags.is_empty() { "0" } else { &flags };
    Some(format!(
        "{{ .ss_sp: {address:#x}, .ss_flags: {flags}, .ss_size: {size} }}"
    ))
}

/// The beginning of `struct sigevent`, without fields that have no meaning for the kind of notification, and without a
/// `sigev_value` of 0.
pub(super) fn signal_event(bytes: &[u8]) -> Option<String> {
    let (value, signal, kind) = (long(bytes, 0)?, word(bytes, 8)?, word(bytes, 12)?);
    let mut fields = Vec::new();
    // With SIGEV_NONE (1), nothing is sent: neither the signal nor the value has a meaning.
    if kind != 1 {
        if value != 0 {
            fields.push(format!(".sigev_value: {value:#x}"));
        }
        fields.push(format!(".sigev_signo: {}", names::SIGNAL.text(signal)));
    }
    fields.push(format!(
        ".sigev_notify: {}",
        system::SIGNAL_EVENT.text(kind)
    ));
    // SIGEV_THREAD_ID.
    if kind == 4 {
        fields.push(format!(".sigev_notify_thread_id: {}", int(bytes, 16)?));
    }
    Some(format!("{{ {} }}", fields.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn information_of_senders_children_and_faults() {
        let words = |words: &[i32]| {
            words
                .iter()
                .flat_map(|word| word.to_ne_bytes())
                .collect::<Vec<u8>>()
        };
        let text = |fields: &[i32]| signal_information(&words(fields));
        let expected =
            "{ .si_signo: USR1, .si_code: QUEUE, .si_pid: 5, .si_uid: 6, .si_value: 0x7 }";
        assert_eq!(text(&[10, 0, -1, 0, 5, 6, 7, 0]).as_deref(), Some(expected));
        let expected =
            "{ .si_signo: CHLD, .si_code: EXITED, .si_pid: 5, .si_uid: 0, .si_status: 3 }";
        assert_eq!(text(&[17, 0, 1, 0, 5, 0, 3, 0]).as_deref(), Some(expected));
        let expected =
            "{ .si_signo: CHLD, .si_code: KILLED, .si_pid: 5, .si_uid: 0, .si_status: KILL }";
        assert_eq!(text(&[17, 0, 2, 0, 5, 0, 9, 0]).as_deref(), Some(expected));
        let expected = "{ .si_signo: SEGV, .si_code: 1, .si_addr: 0x8 }";
        assert_eq!(text(&[11, 0, 1, 0, 8, 0, 0, 0]).as_deref(), Some(expected));
        let expected = "{ .si_signo: ALRM, .si_code: TIMER }";
        assert_eq!(text(&[14, 0, -2, 0, 5, 0, 7, 0]).as_deref(), Some(expected));
        assert_eq!(text(&[0; 8]).as_deref(), Some("{}"));
        assert_eq!(text(&[17, 0, 1]), None);
    }

    #[test]
    fn sigevents_and_signal_stacks() {
        let mut event = 7_u64.to_ne_bytes().to_vec();
        event.extend([14_u32, 4, 99, 0].into_iter().flat_map(u32::to_ne_bytes));
        let expected = "{ .sigev_value: 0x7, .sigev_signo: ALRM, .sigev_notify: THREAD_ID, .sigev_notify_thread_id: 99 }";
        assert_eq!(signal_event(&event).as_deref(), Some(expected));
        let stack = [0x1000_u64, 2, 8192].map(u64::to_ne_bytes).concat();
        let expected = "{ .ss_sp: 0x1000, .ss_flags: DISABLE, .ss_size: 8192 }";
        assert_eq!(signal_stack(&stack).as_deref(), Some(expected));
    }
}

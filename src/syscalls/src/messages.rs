//! Messages of sendmsg(2), recvmsg(2), sendmmsg(2) and recvmmsg(2) as text.

use std::io::{self, Write};

use crate::arguments::{CallArguments, without_names, write_items};
use crate::captured_record::{ADDRESS_ITEM, HEADER_ITEM, MESSAGE_ITEMS};
use crate::structures::{MessageEnd, socket_address};
use crate::{ArgumentOptions, CapturedBytes, constants};

/// Writes the captured messages of an array. For sendmmsg(2), `...` follows if the array has more; for recvmmsg(2), it never
/// follows, since `vlen` does not tell how many messages were received.
pub(crate) fn write_messages(
    to: &mut dyn Write,
    call: &CallArguments<'_>,
    captured: &[&CapturedBytes<'_>],
    options: ArgumentOptions,
) -> io::Result<()> {
    to.write_all(b"[")?;
    let mut written = 0;
    for message in captured.chunk_by(|one, next| message_of(one) == message_of(next)) {
        let separator: &[u8] = if written == 0 { b"" } else { b", " };
        to.write_all(separator)?;
        write_message(to, call, message, options)?;
        written += 1;
    }
    // The upper half of the register is undefined: `vlen` is an `unsigned int`.
    let is_more = call.named("vlen") & 0xffff_ffff > written;
    to.write_all(if is_more && call.name() == "sendmmsg" {
        b", ...]"
    } else {
        b"]"
    })
}

/// Returns the index of the message that captured memory belongs to: each message has [`MESSAGE_ITEMS`] item numbers.
fn message_of(captured: &CapturedBytes<'_>) -> usize {
    captured.item / usize::from(MESSAGE_ITEMS)
}

/// Writes the address (if captured) and the buffers of a message, then the size of the control data if it is not 0, and the flags
/// of a received message if they are not 0.
pub(crate) fn write_message(
    to: &mut dyn Write,
    call: &CallArguments<'_>,
    captured: &[&CapturedBytes<'_>],
    options: ArgumentOptions,
) -> io::Result<()> {
    // The number of an item within its message.
    let item_of = |one: &CapturedBytes<'_>| one.item % usize::from(MESSAGE_ITEMS);
    let find_item = |number: u16| {
        let mut all = captured.iter();
        all.find(|one| item_of(one) == usize::from(number))
    };
    let mut buffers = captured.to_vec();
    let not_buffers = [HEADER_ITEM, ADDRESS_ITEM].map(usize::from);
    buffers.retain(|one| !not_buffers.contains(&item_of(one)));
    let label = |name| if options.hides_names { "" } else { name };
    to.write_all(b"{ ")?;
    if let Some(address) = find_item(ADDRESS_ITEM) {
        let text = match address.is_unreadable {
            true => None,
            false => socket_address(address.bytes, address.is_truncated),
        };
        let text = text.unwrap_or_else(|| "(unreadable)".to_owned());
        let text = match options.hides_names {
            true => without_names(&text),
            false => text,
        };
        write!(to, "{}{text}, ", label(".name: "))?;
    }
    to.write_all(label(".iov: ").as_bytes())?;
    write_items(to, &buffers)?;
    let header = find_item(HEADER_ITEM).map_or(&[][..], |header| header.bytes);
    let MessageEnd {
        control_size,
        flags,
    } = MessageEnd::of(header);
    if control_size != 0 {
        write!(to, ", {}{control_size}", label(".controllen: "))?;
    }
    // The kernel writes these flags; sending calls ignore them.
    if flags != 0 && matches!(call.name(), "recvmsg" | "recvmmsg") {
        write!(to, ", {}{}", label(".flags: "), constants::MSG.text(flags))?;
    }
    to.write_all(b" }")
}

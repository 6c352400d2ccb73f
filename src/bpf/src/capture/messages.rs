//! Reads messages: `struct user_msghdr`, and `struct mmsghdr[]` (linux/socket.h). Registers are those of
//! [`super::programs`]. `at` is the offset of the entry in the plan, the list of memory to copy at a system call.

use rperf_syscalls::captured_record;

use crate::Condition::{Above, AtMost, Equal, NotEqual};
use crate::Operation::{Add, ShiftLeft, ShiftRight};
use crate::Register::{R0, R1, R2, R3, R8, R10};
use crate::Width::{Double, Word};
use crate::{Helper, Label, ProgramBuilder};

use super::layout::{buffer, entry};
use super::programs::{
    ADDRESS, COUNT, ITEM, LIST, WANTED, argument, begin_segment, fail_segment, read_bytes_up_to,
    read_item, read_vectors,
};

/// The item index of a message's `struct user_msghdr`. Item indices number the segments of an argument in the record; [`ITEM`] is
/// something else, the place on the stack for an item of a list in memory.
const HEADER_ITEM: i16 = captured_record::HEADER_ITEM as i16;
/// The item index of a message's socket address.
const ADDRESS_ITEM: i16 = captured_record::ADDRESS_ITEM as i16;
/// The item indices of successive messages begin at multiples of this number.
const MESSAGE_ITEMS: i16 = captured_record::MESSAGE_ITEMS as i16;
/// The maximum number of messages of one list.
const MAX_MESSAGES: i16 = captured_record::MAX_MESSAGES as i16;

/// On the stack: the first [`message::SIZE`] bytes of `struct user_msghdr`.
const MESSAGE: i16 = COUNT - message::SIZE;
/// On the stack: the address of a list of messages, their number, and the result of the call, the number of messages that were
/// sent or received. While a message is read, `buffer::RESULT` has the number of its bytes instead, if the call has returned.
const MESSAGES: i16 = MESSAGE - 8;
const MESSAGE_COUNT: i16 = MESSAGE - 16;
const RESULT: i16 = MESSAGE - 24;
/// The size of `struct sockaddr_storage`.
const LONGEST_ADDRESS: i32 = 128;

/// Offsets in `struct user_msghdr`.
mod message {
    pub(super) const ADDRESS: i16 = 0;
    pub(super) const ADDRESS_LENGTH: i16 = 8;
    pub(super) const VECTORS: i16 = 16;
    pub(super) const COUNT: i16 = 24;
    /// The size of the fields up to and including the number of vectors.
    pub(super) const SIZE: i16 = 32;
    pub(super) const WHOLE_SIZE: i32 = 56;
    /// The size of `struct mmsghdr`: a `struct user_msghdr`, then the number of bytes that were sent or received.
    pub(super) const STRIDE: i32 = 64;
}

/// Reads the messages of `struct mmsghdr[]` at `ADDRESS`. Their number is an argument. When the call has returned, only as many
/// messages as the result says are read, and of each only the bytes that were sent or received, whose number is in its structure.
/// Jumps to `next` or falls through after the last message; jumps to `done` if the record has no room for a further segment.
pub(super) fn read_messages(b: &mut ProgramBuilder, at: i16, next: Label, done: Label) {
    let counted = b.label();
    b.load(Double, R1, R10, ADDRESS);
    b.store(Double, R10, MESSAGES, R1);
    argument(b, at + entry::LENGTH_ARGUMENT);
    // The argument has 32 bits; the upper half of its register is cleared.
    b.operate(ShiftLeft, R1, 32);
    b.operate(ShiftRight, R1, 32);
    b.load(Double, R2, R8, buffer::RESULT);
    b.store(Double, R10, RESULT, R2);
    // While there is no result, its value (`NO_RESULT`) is larger than any number of messages. A result is never negative here:
    // after a failed call, the messages are read without its result.
    b.jump_if(AtMost, R1, R2, counted);
    b.set(R1, R2);
    b.place(counted);
    b.store(Double, R10, MESSAGE_COUNT, R1);
    // `message` is the number of the message; `message::` is the module with the offsets.
    for message in 0..MAX_MESSAGES {
        let (read, next_message) = (b.label(), b.label());
        let start = i32::from(message) * message::STRIDE;
        b.load(Double, R1, R10, MESSAGE_COUNT);
        b.jump_if(AtMost, R1, i32::from(message), next);
        // `read_vectors` takes the number of bytes of one message from `buffer::RESULT`, and reduces it. Without a result, each
        // message begins with the value for none again; otherwise the number of bytes is stored there below.
        b.load(Double, R1, R10, RESULT);
        b.store(Double, R8, buffer::RESULT, R1);
        // Larger than `i32::MAX`: `NO_RESULT`, as results of failed calls do not get here. The structures do not have their
        // numbers of bytes yet.
        b.jump_if(Above, R1, i32::MAX, read);
        b.load(Double, R1, R10, MESSAGES);
        b.store(Double, R10, LIST, R1);
        // The number of bytes follows the message's `struct user_msghdr`. `read_item` clears `ITEM` first: the upper half is 0,
        // and so is a number that cannot be read.
        let byte_count_size = 4;
        read_item(b, byte_count_size, start + message::WHOLE_SIZE);
        b.load(Double, R1, R10, ITEM);
        b.store(Double, R8, buffer::RESULT, R1);
        b.place(read);
        b.load(Double, R1, R10, MESSAGES);
        b.operate(Add, R1, start);
        b.store(Double, R10, ADDRESS, R1);
        read_message(b, at, message * MESSAGE_ITEMS, next_message, done);
        read_vectors(b, at, message * MESSAGE_ITEMS, next_message, done);
        b.place(next_message);
    }
}

/// Reads `struct user_msghdr` at `ADDRESS` as the item [`HEADER_ITEM`] and the socket address in it as [`ADDRESS_ITEM`],
/// both counted from `first`, then sets `ADDRESS` and `COUNT` to the address and number of the message's vectors. Jumps to `next`
/// if the structure cannot be read, and to `done` if the record is full.
pub(super) fn read_message(b: &mut ProgramBuilder, at: i16, first: i16, next: Label, done: Label) {
    let (unreadable, no_address, end) = (b.label(), b.label(), b.label());
    b.address(R1, R10, i32::from(MESSAGE));
    b.set(R2, i32::from(message::SIZE));
    b.load(Double, R3, R10, ADDRESS);
    b.call(Helper::ProbeReadUser);
    b.jump_if(NotEqual, R0, 0, unreadable);
    b.store(Double, R10, WANTED, message::WHOLE_SIZE);
    begin_segment(b, at, first + HEADER_ITEM, done);
    b.set(R2, message::WHOLE_SIZE);
    read_bytes_up_to(b, next);
    b.load(Double, R1, R10, MESSAGE + message::ADDRESS);
    b.jump_if(Equal, R1, 0, no_address);
    b.store(Double, R10, ADDRESS, R1);
    b.load(Word, R1, R10, MESSAGE + message::ADDRESS_LENGTH);
    b.store(Double, R10, WANTED, R1);
    begin_segment(b, at, first + ADDRESS_ITEM, done);
    b.set(R2, LONGEST_ADDRESS);
    read_bytes_up_to(b, no_address);
    b.place(no_address);
    b.load(Double, R1, R10, MESSAGE + message::VECTORS);
    b.store(Double, R10, ADDRESS, R1);
    b.load(Double, R1, R10, MESSAGE + message::COUNT);
    b.store(Double, R10, COUNT, R1);
    b.jump(end);
    b.place(unreadable);
    // The address of the buffers is unknown: the item of the first buffer, not that of the structure, is marked as failed.
    begin_segment(b, at, first, done);
    fail_segment(b);
    b.jump(next);
    b.place(end);
}

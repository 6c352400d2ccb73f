//! The programs of the capture, which copies memory that arguments of system calls point to. The plan for the start or the return
//! of a call has an entry for each argument whose memory is copied. The copies are segments of a record in the buffer of the CPU.
//!
//! Registers: `R6` arguments of the tracepoint, `R7` plan, `R8` buffer of the CPU, `R9` number of the call, later the size of the
//! record so far. The size is kept in the buffer and loaded again for each segment: the verifier does not track the value of a
//! loaded number, so all paths to an instruction look the same to it, and it checks the instruction once.

use crate::Condition::{Above, AtMost, Equal, NotEqual, SignedLess};
use crate::Operation::{Add, And, Mul, ShiftLeft, ShiftRight, Sub};
use crate::Register::{R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, R10};
use crate::Width::{Byte, Double, Half, Word};
use crate::registers::RegisterLayout;
use crate::tasks::{INDEX, TASK, current_task, find_slot, look_up, set_map_and_key};
use crate::{Helper, Label, MapId, ProgramBuilder};
use rperf_syscalls::captured_record;

use super::layout::{
    CALL_LIMIT, LENGTH_OF_ARGUMENT, LENGTH_OF_RESULT, LENGTH_POINTED, MAX_ENTRIES, SOURCE_MESSAGE,
    SOURCE_MESSAGES, SOURCE_TEXT, SOURCE_TEXTS, SOURCE_VECTORS, buffer, entry, record,
};
use super::messages::{read_message, read_messages};

/// From the number of a call plus [`FOR_BEGIN`] or [`FOR_RETURN`] to the plan.
pub(super) const PLANS: MapId = MapId(2);
/// One buffer per CPU.
pub(super) const BUFFERS: MapId = MapId(3);
/// The perf events that receive records, by CPU.
pub(super) const EVENTS: MapId = MapId(4);
/// Tasks whose memory could not be read when their call began.
pub(super) const RETRIES: MapId = MapId(5);
/// The cgroups whose tasks are observed.
pub(super) const CGROUPS: MapId = MapId(6);

/// Added to the number of a call, gives the index of the plan for its start.
const FOR_BEGIN: i32 = 0;
/// Added to the number of a call, gives the index of the plan for its return.
const FOR_RETURN: i32 = CALL_LIMIT;

/// `BPF_F_CURRENT_CPU`.
const CURRENT_CPU: u64 = 0xffff_ffff;
/// The maximum number of texts of one list.
const MAX_TEXTS: i16 = 16;
/// The maximum number of vectors of one list.
const MAX_VECTORS: i16 = 8;
/// The item index of the segment after the texts of a list, which says that there are more or that the list could not be read.
const LAST_ITEM: i16 = i16::MAX;
/// The item index of the segment after the buffers of a list of vectors, which says that there are more. It counts from the index
/// of the first buffer, which is not 0 for the second and further messages of a call.
const MORE_ITEM: i16 = captured_record::MORE_ITEM as i16;

// Offsets on the stack, below those of [`crate::tasks`].
/// The address to read.
pub(super) const ADDRESS: i16 = -48;
/// The number of bytes to read.
const LENGTH: i16 = -56;
/// The address of the list that [`read_item`] reads. It shares the place of [`LENGTH`], so [`read_bytes`] overwrites it.
pub(super) const LIST: i16 = LENGTH;
/// The size of the memory, of which [`LENGTH`] bytes are read; for a text, the maximum number to read.
pub(super) const WANTED: i16 = -64;
/// An item of a list (up to 16 bytes), or a length that an argument points to.
pub(super) const ITEM: i16 = -80;
/// The address of the list of vectors.
const VECTORS: i16 = -88;
/// The number of vectors.
pub(super) const COUNT: i16 = -96;

/// The result while the call has none: no length is limited by it.
const NO_RESULT: u64 = u64::MAX >> 1;

/// The settings that the programs depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CaptureContext<'a> {
    /// Whether only tasks in the map of tasks are captured.
    pub(super) known_tasks_only: bool,
    /// A process that is not captured.
    pub(super) excluded_process: Option<u32>,
    /// Ids of threads that are not captured.
    pub(super) excluded_threads: &'a [u32],
    /// The number of entries of [`CGROUPS`].
    pub(super) cgroup_count: i32,
    pub(super) registers: RegisterLayout,
}

/// At `sys_enter(registers, number)`: captures the memory of the plan for the start.
pub(super) fn enter(context: CaptureContext<'_>) -> ProgramBuilder {
    let mut b = ProgramBuilder::new();
    let out = b.label();
    b.set(R6, R1);
    b.load(Double, R9, R6, 8);
    b.jump_if(Above, R9, CALL_LIMIT - 1, out);
    b.store(Word, R10, INDEX, R9);
    look_up(&mut b, PLANS, INDEX);
    b.jump_if(Equal, R0, 0, out);
    b.set(R7, R0);
    b.load(Byte, R1, R7, entry::SOURCE);
    b.jump_if(Equal, R1, 0, out);
    select_task(&mut b, context, out);
    fill_buffer(&mut b, context.registers, out);
    b.store(Word, R8, buffer::RECORD + record::NUMBER, R9);
    b.store(Word, R8, buffer::RECORD + record::IS_RETURN, 0);
    b.set_wide(R1, NO_RESULT);
    b.store(Double, R8, buffer::RESULT, R1);
    entries(&mut b);
    note_failures(&mut b);
    output(&mut b, out);
    b.place(out);
    b.exit();
    b
}

/// At `sys_exit(registers, result)`: captures the memory of the plan for the return unless the call failed, and again that of the
/// plan for the start if some of it could not be read when the call began.
pub(super) fn exit(context: CaptureContext<'_>) -> ProgramBuilder {
    let mut b = ProgramBuilder::new();
    let (call_failed, no_retry, out) = (b.label(), b.label(), b.label());
    b.set(R6, R1);
    select_call(&mut b, context.registers, out);
    select_task(&mut b, context, out);
    fill_buffer(&mut b, context.registers, out);
    b.load(Word, R9, R8, buffer::REGISTERS + context.registers.number);
    b.jump_if(Above, R9, CALL_LIMIT - 1, out);
    b.store(Word, R8, buffer::RECORD + record::NUMBER, R9);
    b.store(Word, R8, buffer::RECORD + record::IS_RETURN, 1);
    b.load(Double, R1, R6, 8);
    b.store(Double, R8, buffer::RESULT, R1);
    b.jump_if(SignedLess, R1, 0, call_failed);
    plan(&mut b, FOR_RETURN, out);
    entries(&mut b);
    b.place(call_failed);
    look_up(&mut b, RETRIES, TASK);
    b.jump_if(Equal, R0, 0, no_retry);
    set_map_and_key(&mut b, RETRIES, TASK);
    b.call(Helper::MapDeleteElem);
    b.set_wide(R1, NO_RESULT);
    b.store(Double, R8, buffer::RESULT, R1);
    plan(&mut b, FOR_BEGIN, out);
    entries(&mut b);
    b.place(no_retry);
    output(&mut b, out);
    b.place(out);
    b.exit();
    b
}

/// Jumps to `out` if both plans of the call that returns are empty. This check comes first, so that calls that are not captured
/// cost little in any task, observed or not.
fn select_call(b: &mut ProgramBuilder, registers: RegisterLayout, out: Label) {
    let selected = b.label();
    // The number of the call is copied to `ADDRESS`, which is not in use yet.
    b.address(R1, R10, i32::from(ADDRESS));
    b.set(R2, 4);
    b.load(Double, R3, R6, 0);
    b.operate(Add, R3, i32::from(registers.number));
    b.call(Helper::ProbeReadKernel);
    b.load(Word, R9, R10, ADDRESS);
    b.jump_if(Above, R9, CALL_LIMIT - 1, out);
    // `FOR_BEGIN` is 0, so the second addition starts from the number, too.
    for add in [FOR_BEGIN, FOR_RETURN] {
        b.operate(Add, R9, add);
        b.store(Word, R10, INDEX, R9);
        look_up(b, PLANS, INDEX);
        b.jump_if(Equal, R0, 0, out);
        b.load(Byte, R1, R0, entry::SOURCE);
        b.jump_if(NotEqual, R1, 0, selected);
    }
    b.jump(out);
    b.place(selected);
}

/// Jumps to `out` unless the current task is observed.
fn select_task(b: &mut ProgramBuilder, context: CaptureContext<'_>, out: Label) {
    // Leaves the process id in the upper half of `R0`, and the thread id at `TASK`.
    current_task(b);
    if let Some(process) = context.excluded_process {
        b.operate(ShiftRight, R0, 32);
        b.jump_if(Equal, R0, process.cast_signed(), out);
    }
    b.load(Word, R1, R10, TASK);
    for thread in context.excluded_threads {
        b.jump_if(Equal, R1, thread.cast_signed(), out);
    }
    if context.cgroup_count > 0 {
        select_cgroup(b, context.cgroup_count, out);
    }
    if context.known_tasks_only {
        // Only its jump to `out` matters here, not the slot in `R0`.
        find_slot(b, out);
    }
}

/// Jumps to `out` unless the current task is in one of the cgroups.
fn select_cgroup(b: &mut ProgramBuilder, cgroup_count: i32, out: Label) {
    let selected = b.label();
    for index in 0..cgroup_count {
        b.map(R1, CGROUPS);
        b.set(R2, index);
        b.call(Helper::CurrentTaskUnderCgroup);
        b.jump_if(Equal, R0, 1, selected);
    }
    b.jump(out);
    b.place(selected);
}

/// Sets `R8` to the buffer of this CPU, stores the registers and arguments there, and begins an empty record. Jumps to `out` for
/// 32-bit programs.
fn fill_buffer(b: &mut ProgramBuilder, registers: RegisterLayout, out: Label) {
    b.store(Word, R10, INDEX, 0);
    look_up(b, BUFFERS, INDEX);
    b.jump_if(Equal, R0, 0, out);
    b.set(R8, R0);
    b.address(R1, R8, i32::from(buffer::REGISTERS));
    b.set(R2, i32::from(registers.size));
    b.load(Double, R3, R6, 0);
    b.call(Helper::ProbeReadKernel);
    b.load(Double, R1, R8, buffer::REGISTERS + registers.compat.offset);
    b.operate(And, R1, registers.compat.mask);
    b.jump_if(Equal, R1, registers.compat.value, out);
    for (offset, at) in registers.arguments.into_iter().zip(0_i16..) {
        b.load(Double, R1, R8, buffer::REGISTERS + offset);
        b.store(Double, R8, buffer::ARGUMENTS + 8 * at, R1);
    }
    b.store(Double, R8, buffer::RECORD_SIZE, i32::from(record::HEADER));
    b.store(Double, R8, buffer::FAILED, 0);
}

/// Sets `R7` to a plan of the call whose number is in the record: that for `add`, which is [`FOR_BEGIN`] or [`FOR_RETURN`]. The
/// plan of a call that is not captured is empty. Jumps to `out` if the number is too large.
fn plan(b: &mut ProgramBuilder, add: i32, out: Label) {
    b.load(Word, R1, R8, buffer::RECORD + record::NUMBER);
    b.operate(Add, R1, add);
    b.store(Word, R10, INDEX, R1);
    look_up(b, PLANS, INDEX);
    b.jump_if(Equal, R0, 0, out);
    b.set(R7, R0);
}

/// Captures the memory of all entries of the plan at `R7`. Only the first entry may be a list (texts, vectors or messages) or a
/// message, which contains a list of vectors.
fn entries(b: &mut ProgramBuilder) {
    let done = b.label();
    for index in 0..MAX_ENTRIES {
        one_entry(b, index * entry::SIZE, index == 0, done);
    }
    b.place(done);
}

/// Captures the memory of the entry at the offset `at` of the plan. Jumps to `done` after the last entry, or if the record is
/// full.
fn one_entry(b: &mut ProgramBuilder, at: i16, may_be_list: bool, done: Label) {
    let (text, texts, vectors, next) = (b.label(), b.label(), b.label(), b.label());
    let (message, messages, counted_vectors) = (b.label(), b.label(), b.label());
    // The item index of memory that is no list, and that of the first item of a list.
    let first_item = 0;
    b.load(Byte, R2, R7, at + entry::SOURCE);
    b.jump_if(Equal, R2, 0, done);
    argument(b, at + entry::ARGUMENT);
    b.jump_if(Equal, R1, 0, next);
    b.store(Double, R10, ADDRESS, R1);
    b.jump_if(Equal, R2, SOURCE_TEXT, text);
    if may_be_list {
        b.jump_if(Equal, R2, SOURCE_TEXTS, texts);
        b.jump_if(Equal, R2, SOURCE_VECTORS, vectors);
        b.jump_if(Equal, R2, SOURCE_MESSAGE, message);
        b.jump_if(Equal, R2, SOURCE_MESSAGES, messages);
    }
    wanted_length(b, at);
    begin_segment(b, at, first_item, done);
    read_bytes(b, at, next);
    b.jump(next);
    b.place(text);
    begin_segment(b, at, first_item, done);
    read_text(b, at);
    b.jump(next);
    if may_be_list {
        b.place(texts);
        read_texts(b, at, next, done);
        b.jump(next);
        b.place(messages);
        read_messages(b, at, next, done);
        b.jump(next);
        b.place(message);
        // Sets `ADDRESS` and `COUNT` to the message's vectors.
        read_message(b, at, first_item, next, done);
        b.jump(counted_vectors);
        b.place(vectors);
        argument(b, at + entry::LENGTH_ARGUMENT);
        b.store(Double, R10, COUNT, R1);
        b.place(counted_vectors);
        read_vectors(b, at, first_item, next, done);
    } else {
        for unused in [texts, vectors, message, messages, counted_vectors] {
            b.place(unused);
        }
    }
    b.place(next);
}

/// Leaves in `R1` the argument whose index is at the offset `at` of the plan.
pub(super) fn argument(b: &mut ProgramBuilder, at: i16) {
    b.load(Byte, R1, R7, at);
    b.operate(And, R1, 7);
    b.operate(ShiftLeft, R1, 3);
    b.operate(Add, R1, R8);
    b.load(Double, R1, R1, buffer::ARGUMENTS);
}

/// Stores in `WANTED` the number of bytes that the memory of the entry at the offset `at` has.
fn wanted_length(b: &mut ProgramBuilder, at: i16) {
    let (of_argument, of_result, scaled, end) = (b.label(), b.label(), b.label(), b.label());
    let pointed = b.label();
    b.load(Word, R3, R7, at + entry::UNIT);
    b.load(Byte, R2, R7, at + entry::LENGTH);
    b.jump_if(Equal, R2, LENGTH_OF_ARGUMENT, of_argument);
    b.jump_if(Equal, R2, LENGTH_OF_RESULT, of_result);
    b.jump_if(Equal, R2, LENGTH_POINTED, pointed);
    // `LENGTH_FIXED`: the unit is the length.
    b.set(R1, R3);
    b.jump(end);
    b.place(pointed);
    argument(b, at + entry::LENGTH_ARGUMENT);
    b.set(R3, R1);
    // If the length cannot be read, it is 0.
    b.store(Double, R10, ITEM, 0);
    b.address(R1, R10, i32::from(ITEM));
    b.set(R2, 4);
    b.call(Helper::ProbeReadUser);
    b.load(Double, R1, R10, ITEM);
    b.jump(end);
    b.place(of_argument);
    argument(b, at + entry::LENGTH_ARGUMENT);
    b.jump(scaled);
    b.place(of_result);
    b.load(Double, R1, R8, buffer::RESULT);
    b.place(scaled);
    b.operate(Mul, R1, R3);
    b.place(end);
    b.store(Double, R10, WANTED, R1);
}

/// Sets `R9` to the record's size and begins a segment there, with the argument index of the entry at the offset `at` and the
/// item index `item`. Jumps to `done` if the record is longer than [`buffer::SEGMENT_START_LIMIT`].
pub(super) fn begin_segment(b: &mut ProgramBuilder, at: i16, item: i16, done: Label) {
    begin_segment_up_to(b, at, item, buffer::SEGMENT_START_LIMIT, done);
}

/// Like [`begin_segment`], with another limit.
fn begin_segment_up_to(b: &mut ProgramBuilder, at: i16, item: i16, limit: i32, done: Label) {
    b.load(Double, R9, R8, buffer::RECORD_SIZE);
    b.jump_if(Above, R9, limit, done);
    b.load(Byte, R2, R7, at + entry::ARGUMENT);
    segment_address(b, R1);
    b.store(Byte, R1, record::ARGUMENT, R2);
    b.store(Half, R1, record::ITEM, i32::from(item));
}

/// Sets a register to the address of the segment that begins at the size `R9` of the record.
fn segment_address(b: &mut ProgramBuilder, to: crate::Register) {
    b.set(to, R8);
    b.operate(Add, to, R9);
    b.operate(Add, to, i32::from(buffer::RECORD));
}

/// Leaves the smaller of the entry's limit and [`buffer::MAX_SEGMENT_DATA`] in `R2`.
fn limit(b: &mut ProgramBuilder, at: i16) {
    let fits = b.label();
    b.load(Word, R2, R7, at + entry::LIMIT);
    b.jump_if(AtMost, R2, buffer::MAX_SEGMENT_DATA, fits);
    b.set(R2, buffer::MAX_SEGMENT_DATA);
    b.place(fits);
}

/// Reads the text at `ADDRESS` into the segment: at most as many bytes as the entry's limit, including the NUL.
fn read_text(b: &mut ProgramBuilder, at: i16) {
    let (unreadable, end) = (b.label(), b.label());
    limit(b, at);
    b.store(Double, R10, WANTED, R2);
    segment_address(b, R1);
    b.operate(Add, R1, i32::from(record::DATA));
    b.load(Double, R3, R10, ADDRESS);
    b.call(Helper::ProbeReadUserStr);
    b.jump_if(SignedLess, R0, 1, unreadable);
    // Never true, as the limit in `R2` was not larger: tells the verifier the maximum.
    b.jump_if(Above, R0, buffer::MAX_SEGMENT_DATA, unreadable);
    end_segment(b, record::IS_TEXT);
    b.jump(end);
    b.place(unreadable);
    fail_segment(b);
    b.place(end);
}

/// Reads `WANTED` bytes at `ADDRESS` into the segment, at most the entry's limit. Jumps to `next` if `WANTED` is 0.
fn read_bytes(b: &mut ProgramBuilder, at: i16, next: Label) {
    limit(b, at);
    read_bytes_up_to(b, next);
}

/// Like [`read_bytes`], with the limit in `R2`.
pub(super) fn read_bytes_up_to(b: &mut ProgramBuilder, next: Label) {
    let (limited, unreadable, end) = (b.label(), b.label(), b.label());
    b.load(Double, R1, R10, WANTED);
    b.jump_if(Equal, R1, 0, next);
    b.jump_if(AtMost, R2, R1, limited);
    b.set(R2, R1);
    b.place(limited);
    // Never true, as the limit was not larger: tells the verifier the maximum. The same applies after the call.
    b.jump_if(Above, R2, buffer::MAX_SEGMENT_DATA, next);
    b.store(Double, R10, LENGTH, R2);
    segment_address(b, R1);
    b.operate(Add, R1, i32::from(record::DATA));
    b.load(Double, R3, R10, ADDRESS);
    b.call(Helper::ProbeReadUser);
    b.jump_if(NotEqual, R0, 0, unreadable);
    b.load(Double, R0, R10, LENGTH);
    b.jump_if(Above, R0, buffer::MAX_SEGMENT_DATA, unreadable);
    end_segment(b, record::IS_BYTES);
    b.jump(end);
    b.place(unreadable);
    fail_segment(b);
    b.place(end);
}

/// Completes the segment, which has `R0` bytes of data and this state, and adds it to the record.
fn end_segment(b: &mut ProgramBuilder, state: i32) {
    segment_address(b, R1);
    b.store(Byte, R1, record::STATE, state);
    b.store(Word, R1, record::LENGTH, R0);
    b.load(Double, R2, R10, WANTED);
    b.store(Double, R1, record::WANTED, R2);
    b.operate(Add, R0, i32::from(record::DATA) + 7);
    b.operate(And, R0, -8);
    b.operate(Add, R0, R9);
    b.store(Double, R8, buffer::RECORD_SIZE, R0);
}

/// Completes the segment as unreadable, without data, and sets `FAILED`.
pub(super) fn fail_segment(b: &mut ProgramBuilder) {
    b.store(Double, R8, buffer::FAILED, 1);
    b.store(Double, R10, WANTED, 0);
    b.set(R0, 0);
    end_segment(b, record::IS_UNREADABLE);
}

/// Reads the texts of a list of addresses that ends with 0, then jumps to `next`. If there are more texts than [`MAX_TEXTS`] or
/// than the record has room for, adds a segment `IS_MORE` before the jump. Falls through if an address in the list cannot be
/// read. Jumps to `done` if the record has no room for a segment that says so, or for `IS_MORE`.
fn read_texts(b: &mut ProgramBuilder, at: i16, next: Label, done: Label) {
    let (unreadable, full) = (b.label(), b.label());
    b.load(Double, R1, R10, ADDRESS);
    b.store(Double, R10, LIST, R1);
    let address_size = 8;
    // The address after the last text that is read tells whether there are more.
    for item in 0..=MAX_TEXTS {
        read_item(b, address_size, address_size * i32::from(item));
        b.jump_if(NotEqual, R0, 0, unreadable);
        b.load(Double, R1, R10, ITEM);
        b.jump_if(Equal, R1, 0, next);
        if item < MAX_TEXTS {
            b.store(Double, R10, ADDRESS, R1);
            begin_segment(b, at, item, full);
            read_text(b, at);
        }
    }
    b.place(full);
    more_items(b, at, LAST_ITEM, done);
    b.jump(next);
    b.place(unreadable);
    begin_segment(b, at, LAST_ITEM, done);
    fail_segment(b);
}

/// Adds a segment `IS_MORE`. It may begin beyond [`buffer::SEGMENT_START_LIMIT`], but must end within
/// [`buffer::MAX_RECORD_SIZE`]; otherwise jumps to `done`.
fn more_items(b: &mut ProgramBuilder, at: i16, item: i16, done: Label) {
    let longest = buffer::MAX_RECORD_SIZE - i32::from(record::DATA);
    begin_segment_up_to(b, at, item, longest, done);
    b.store(Double, R10, WANTED, 0);
    b.set(R0, 0);
    end_segment(b, record::IS_MORE);
}

/// Reads `size` bytes at an offset of the list whose address is in `LIST` to `ITEM`, whose first 8 bytes are cleared
/// before. Leaves 0 in `R0` if they could be read.
pub(super) fn read_item(b: &mut ProgramBuilder, size: i32, offset: i32) {
    b.store(Double, R10, ITEM, 0);
    b.address(R1, R10, i32::from(ITEM));
    b.set(R2, size);
    b.load(Double, R3, R10, LIST);
    b.operate(Add, R3, offset);
    b.call(Helper::ProbeReadUser);
}

/// Reads the buffers of `struct iovec[]` at `ADDRESS`, which has `COUNT` elements, as the items from `first` on: of each buffer
/// at most the entry's limit, of all buffers together at most as many bytes as the number at [`buffer::RESULT`]. Subtracts the
/// bytes wanted of each buffer from that number. Then jumps to `next`. If there are more buffers than [`MAX_VECTORS`] or than the
/// record has room for, adds a segment `IS_MORE` before the jump, unless that number is 0; jumps to `done` if there is no room
/// for it. Falls through if an element of the array cannot be read.
pub(super) fn read_vectors(b: &mut ProgramBuilder, at: i16, first: i16, next: Label, done: Label) {
    let (unreadable, full) = (b.label(), b.label());
    b.load(Double, R1, R10, ADDRESS);
    b.store(Double, R10, VECTORS, R1);
    let vector_size = 16;
    for item in 0..MAX_VECTORS {
        let (filled_whole, not_empty, skip) = (b.label(), b.label(), b.label());
        b.load(Double, R1, R10, COUNT);
        b.jump_if(AtMost, R1, i32::from(item), next);
        begin_segment(b, at, first + item, full);
        b.load(Double, R1, R10, VECTORS);
        b.store(Double, R10, LIST, R1);
        read_item(b, vector_size, vector_size * i32::from(item));
        b.jump_if(NotEqual, R0, 0, unreadable);
        b.load(Double, R1, R10, ITEM);
        b.store(Double, R10, ADDRESS, R1);
        // The smaller one of the size of the buffer and what is left of the result.
        b.load(Double, R1, R10, ITEM + 8);
        b.load(Double, R2, R8, buffer::RESULT);
        b.jump_if(AtMost, R1, R2, filled_whole);
        b.set(R1, R2);
        b.place(filled_whole);
        b.operate(Sub, R2, R1);
        b.store(Double, R8, buffer::RESULT, R2);
        b.store(Double, R10, WANTED, R1);
        b.jump_if(NotEqual, R1, 0, not_empty);
        b.set(R0, 0);
        end_segment(b, record::IS_BYTES);
        b.jump(skip);
        b.place(not_empty);
        read_bytes(b, at, skip);
        b.place(skip);
    }
    b.load(Double, R1, R10, COUNT);
    b.jump_if(AtMost, R1, i32::from(MAX_VECTORS), next);
    b.place(full);
    // If nothing is left of the result, further buffers have no content, so none is missing.
    b.load(Double, R2, R8, buffer::RESULT);
    b.jump_if(Equal, R2, 0, next);
    more_items(b, at, first + MORE_ITEM, done);
    b.jump(next);
    b.place(unreadable);
    fail_segment(b);
}

/// If memory could not be read, adds the task to `RETRIES`. If pages were not resident, the call itself makes them resident, so
/// that the program at its return can read them.
fn note_failures(b: &mut ProgramBuilder) {
    let end = b.label();
    b.load(Double, R1, R8, buffer::FAILED);
    b.jump_if(Equal, R1, 0, end);
    // The value in the map: only whether there is one matters.
    b.store(Word, R10, INDEX, 1);
    set_map_and_key(b, RETRIES, TASK);
    b.address(R3, R10, i32::from(INDEX));
    b.set(R4, 0);
    b.call(Helper::MapUpdateElem);
    b.place(end);
}

/// Writes the record to the event of this CPU, unless it has no segment.
fn output(b: &mut ProgramBuilder, out: Label) {
    b.load(Double, R5, R8, buffer::RECORD_SIZE);
    b.jump_if(AtMost, R5, i32::from(record::HEADER), out);
    b.jump_if(Above, R5, buffer::MAX_RECORD_SIZE, out);
    b.set(R1, R6);
    b.map(R2, EVENTS);
    b.set_wide(R3, CURRENT_CPU);
    b.address(R4, R8, i32::from(buffer::RECORD));
    b.call(Helper::PerfEventOutput);
}

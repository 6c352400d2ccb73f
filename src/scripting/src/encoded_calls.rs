//! The calls of a block (those for consecutive events, which the interpreter gets at once), encoded for the shim in Python.
//!
//! ```text
//! texts   short texts, each once; the values below refer to them
//! calls   general calls, whose arguments are not in columns, in order: number of the function, tuple of all arguments
//! groups  calls with arguments in columns, by function: number of the function, number of calls, one column for each
//!         argument that is read: bytes of numbers, or a list
//! order   the group of each call, from 1, or 0 for a general one; None if all calls are general or all are in one group
//! ```
//!
//! The block is a dict with these members in Python's `marshal` format. Arguments in columns cost the interpreter a third of
//! the time of arguments in tuples.

use crate::marshal::MarshalWriter;

/// A column of arguments.
#[derive(Debug, Default)]
struct Column {
    /// Numbers in the byte order of this machine, or marshalled values.
    bytes: Vec<u8>,
    is_list: bool,
}

/// The calls of a function with arguments in columns.
#[derive(Debug, Default)]
struct CallGroup {
    /// The number of the function.
    number: usize,
    /// The number of calls.
    count: usize,
    columns: Vec<Column>,
}

/// Calls of functions, encoded. A function that is called for an event has the event's number.
#[derive(Debug, Default)]
pub(crate) struct EncodedCalls {
    /// The general calls, and the texts of all calls.
    writer: MarshalWriter,
    /// The number of general calls.
    general_count: usize,
    /// The groups, of which the first `used` are in use; the others keep their memory for the next blocks.
    groups: Vec<CallGroup>,
    used: usize,
    /// The group of each function, from 1; 0 if it has none.
    group_of_function: Vec<u16>,
    /// The group of each call, from 1; 0 for a general call.
    order: Vec<u16>,
    /// The last block that [`EncodedCalls::bytes`] returned.
    message: MarshalWriter,
}

impl EncodedCalls {
    /// Whether there are no calls.
    pub(crate) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Begins a general call of the function with this number; a tuple of its arguments must follow.
    pub(crate) fn begin(&mut self, number: usize) -> &mut MarshalWriter {
        self.order.push(0);
        self.general_count += 1;
        self.writer.keep_texts_separate();
        self.writer.tuple(2);
        self.writer.unsigned(number as u64);
        &mut self.writer
    }

    /// Begins a call of the function with this number, whose arguments are in `column_count` columns.
    pub(crate) fn begin_in_columns(
        &mut self,
        number: usize,
        column_count: usize,
    ) -> CallColumns<'_> {
        self.writer.keep_texts_separate();
        let group_number = match self.group_of_function.get(number) {
            Some(known) if *known > 0 => *known,
            _ => self.new_group(number, column_count),
        };
        self.order.push(group_number);
        let group = self.groups.get_mut(usize::from(group_number) - 1);
        let columns = match group {
            Some(group) => {
                group.count += 1;
                group.columns.iter_mut()
            }
            None => [].iter_mut(),
        };
        CallColumns {
            columns,
            writer: &mut self.writer,
        }
    }

    /// Begins a group of calls of the function with this number, and returns the number of the group, from 1.
    fn new_group(&mut self, number: usize, column_count: usize) -> u16 {
        if self.groups.len() <= self.used {
            self.groups.push(CallGroup::default());
        }
        if let Some(group) = self.groups.get_mut(self.used) {
            group.number = number;
            group.columns.resize_with(column_count, Column::default);
        }
        self.used += 1;
        // Only functions of events have groups, one each. A kernel has fewer tracepoints than `u16::MAX`.
        let group_number = u16::try_from(self.used).unwrap_or(u16::MAX);
        if self.group_of_function.len() <= number {
            self.group_of_function.resize(number + 1, 0);
        }
        if let Some(known) = self.group_of_function.get_mut(number) {
            *known = group_number;
        }
        group_number
    }

    /// The encoded calls; `None` if there are none.
    pub(crate) fn bytes(&mut self) -> Option<&[u8]> {
        if self.is_empty() {
            return None;
        }
        let to = &mut self.message;
        to.clear();
        to.dict();
        // Values refer to a text by its position in `texts`, counted over all texts of this message that are not plain. So the
        // keys of this dict must be plain: they are not counted.
        to.plain_text(b"texts");
        to.list(self.writer.text_count());
        to.append_texts(&self.writer);
        to.plain_text(b"calls");
        to.list(self.general_count);
        to.append(&self.writer);
        to.plain_text(b"groups");
        to.list(self.used);
        for group in self.groups.iter().take(self.used) {
            to.tuple(3);
            to.unsigned(group.number as u64);
            to.unsigned(group.count as u64);
            to.list(group.columns.len());
            for column in &group.columns {
                match column.is_list {
                    true => {
                        to.list(group.count);
                        to.append_bytes(&column.bytes);
                    }
                    false => to.byte_string(&column.bytes),
                }
            }
        }
        to.plain_text(b"order");
        // The groups, and the general calls if there are any.
        let sources = self.used + usize::from(self.general_count > 0);
        match sources {
            1 => to.none(),
            _ => {
                let order: Vec<u8> = self
                    .order
                    .iter()
                    .flat_map(|group_number| group_number.to_ne_bytes())
                    .collect();
                to.byte_string(&order);
            }
        }
        to.end_dict();
        Some(to.bytes())
    }

    pub(crate) fn clear(&mut self) {
        self.writer.clear();
        self.general_count = 0;
        self.order.clear();
        for group in self.groups.iter_mut().take(self.used) {
            group.count = 0;
            if let Some(known) = self.group_of_function.get_mut(group.number) {
                *known = 0;
            }
            for column in &mut group.columns {
                column.bytes.clear();
            }
        }
        self.used = 0;
    }
}

/// The columns of a call that have no value yet, in order.
pub(crate) struct CallColumns<'c> {
    columns: std::slice::IterMut<'c, Column>,
    writer: &'c mut MarshalWriter,
}

impl CallColumns<'_> {
    /// Adds a number to the next column.
    pub(crate) fn number<const N: usize>(&mut self, bytes: [u8; N]) {
        if let Some(column) = self.columns.next() {
            column.is_list = false;
            column.bytes.extend_from_slice(&bytes);
        }
    }

    /// Adds a value to the next column, which is a list.
    pub(crate) fn value(&mut self, write: impl FnOnce(&mut MarshalWriter)) {
        if let Some(column) = self.columns.next() {
            column.is_list = true;
            self.writer.write_to(&mut column.bytes, write);
        }
    }
}

//! Memory that arguments point to, read from outside the process after the call has begun. Its content may have changed since.

use crate::captured_record::{ADDRESS_ITEM, HEADER_ITEM, MAX_MESSAGES, MESSAGE_ITEMS, MORE_ITEM};
use crate::{Capture, CaptureLength, CaptureLimit, CaptureSource, CapturedBytes, Syscall};

/// Reads memory of running processes.
pub trait ProcessMemory: std::fmt::Debug {
    /// Copies memory of the thread's process, from `address` on, into `to`. Returns the number of bytes copied.
    fn read(&self, thread: u32, address: u64, to: &mut [u8]) -> usize;
}

/// Memory of an argument, or of an item of it, read after the call had begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LateMemory {
    /// Index of the argument, from 0.
    pub argument: usize,
    /// Number of the item, as in [`captured_record`](crate::captured_record), if the argument is a list or a message;
    /// otherwise 0.
    pub item: usize,
    /// The bytes; those of a text without its NUL.
    pub bytes: Vec<u8>,
    /// Whether the text or buffer is longer than `bytes`.
    pub is_truncated: bool,
    /// Whether this has no bytes, but marks that the list has more items, which were not read. `item` is then greater than the
    /// numbers of all items of this list that were read.
    pub marks_more_items: bool,
}

/// `PATH_MAX`.
const LONGEST_PATH: usize = 4096;
/// The smallest page size. Memory is read page by page, since a text may end before an unmapped page.
const PAGE: u64 = 4096;
/// The maximum number of texts of a list, as in rperf's BPF programs.
const MAX_TEXTS: u64 = 16;
/// The maximum number of buffers of a list, as in rperf's BPF programs.
const MAX_VECTORS: u64 = 8;
/// The size of `struct sockaddr_storage` in bytes.
const LONGEST_ADDRESS: usize = 128;
/// The size of `struct user_msghdr` in bytes.
const MESSAGE_SIZE: usize = 56;
/// The size of `struct mmsghdr` in bytes.
const MESSAGE_STRIDE: u64 = 64;
/// The number of the first item of an argument; also of the only one, if the argument is no list or message.
const FIRST_ITEM: u16 = 0;

impl Syscall {
    /// Reads the memory that the call reads through its arguments. `string_size` is the limit in bytes of texts and buffers,
    /// except paths and structures, which have limits of their own. Memory with unreadable bytes is omitted. The result is empty
    /// for execve(2) and execveat(2), which replace the memory of the process.
    #[must_use]
    pub fn late_memory(
        &self,
        memory: &dyn ProcessMemory,
        thread: u32,
        values: &[u64; 6],
        string_size: usize,
    ) -> Vec<LateMemory> {
        if matches!(self.name, "execve" | "execveat") {
            return Vec::new();
        }
        let mut reader = Reader {
            memory,
            thread,
            values,
            string_size,
            items: Vec::new(),
        };
        for capture in self.capture_plan().at_entry {
            reader.capture(&capture);
        }
        reader.items
    }
}

impl LateMemory {
    /// Returns the memory for printing, marked as read late.
    #[must_use]
    pub fn captured(&self) -> CapturedBytes<'_> {
        CapturedBytes {
            argument: self.argument,
            item: self.item,
            bytes: &self.bytes,
            is_truncated: self.is_truncated,
            // Unreadable memory is omitted.
            is_unreadable: false,
            marks_more_items: self.marks_more_items,
            is_late: true,
        }
    }
}

/// Bytes that were read, and whether there were more.
struct Part {
    bytes: Vec<u8>,
    is_truncated: bool,
}

struct Reader<'a> {
    memory: &'a dyn ProcessMemory,
    thread: u32,
    values: &'a [u64; 6],
    string_size: usize,
    items: Vec<LateMemory>,
}

impl Reader<'_> {
    fn value(&self, index: u8) -> u64 {
        self.values
            .get(usize::from(index))
            .copied()
            .unwrap_or_default()
    }

    fn capture(&mut self, capture: &Capture) {
        let address = self.value(capture.argument);
        if address == 0 {
            return;
        }
        let argument = usize::from(capture.argument);
        let limit = match capture.limit {
            CaptureLimit::Path => LONGEST_PATH,
            CaptureLimit::StringSize => self.string_size,
            CaptureLimit::Bytes(bytes) => bytes as usize,
        };
        match capture.source {
            CaptureSource::Text => {
                let text = self.text(address, limit);
                self.add(argument, FIRST_ITEM.into(), text);
            }
            CaptureSource::Bytes(length) => {
                let length = self.length(length);
                if length > 0 {
                    let bytes = self.bytes(address, length, limit);
                    self.add(argument, FIRST_ITEM.into(), bytes);
                }
            }
            CaptureSource::Texts => self.texts(argument, address, limit),
            CaptureSource::Vectors(count) => {
                let count = self.value(count);
                self.vectors(argument, FIRST_ITEM, [address, count], limit);
            }
            CaptureSource::Message => self.message(argument, FIRST_ITEM, address, limit),
            CaptureSource::Messages(count) => {
                self.messages(argument, address, self.value(count), limit);
            }
        }
    }

    /// Adds an item, unless it was unreadable (`None`).
    fn add(&mut self, argument: usize, item: usize, part: Option<Part>) {
        if let Some(Part {
            bytes,
            is_truncated,
        }) = part
        {
            self.items.push(LateMemory {
                argument,
                item,
                bytes,
                is_truncated,
                marks_more_items: false,
            });
        }
    }

    /// Adds the mark that the list has more items.
    fn add_more(&mut self, argument: usize, item: u64) {
        self.items.push(LateMemory {
            argument,
            item: usize::try_from(item).unwrap_or(usize::MAX),
            bytes: Vec::new(),
            is_truncated: false,
            marks_more_items: true,
        });
    }

    fn length(&self, length: CaptureLength) -> u64 {
        match length {
            CaptureLength::Fixed(bytes) => bytes.into(),
            CaptureLength::Argument { argument, unit } => {
                self.value(argument).saturating_mul(unit.into())
            }
            // There is a result only when the call returns.
            CaptureLength::Result { .. } => 0,
            CaptureLength::Pointed { argument } => {
                let pointed = self.bytes(self.value(argument), 4, 4);
                let size =
                    pointed.and_then(|part| Some(u32::from_ne_bytes(*part.bytes.first_chunk()?)));
                size.unwrap_or_default().into()
            }
        }
    }

    /// Reads at most `size` bytes up to the end of the page; fewer if not all are readable.
    fn page(&self, address: u64, size: usize) -> Vec<u8> {
        let left_in_page = usize::try_from(PAGE - address % PAGE).unwrap_or(1);
        let mut bytes = vec![0; size.min(left_in_page)];
        let read = self.memory.read(self.thread, address, &mut bytes);
        bytes.truncate(read);
        bytes
    }

    /// Reads a buffer of `length` bytes, but at most its first `limit` bytes; `None` if one of these is unreadable.
    fn bytes(&self, address: u64, length: u64, limit: usize) -> Option<Part> {
        let size = usize::try_from(length).unwrap_or(usize::MAX).min(limit);
        let mut bytes = Vec::new();
        while bytes.len() < size {
            let page = self.page(address.wrapping_add(bytes.len() as u64), size - bytes.len());
            if page.is_empty() {
                return None;
            }
            bytes.extend(page);
        }
        Some(Part {
            is_truncated: length > bytes.len() as u64,
            bytes,
        })
    }

    /// Reads a text up to its NUL, at most `limit` bytes; `None` if a byte before its end is unreadable.
    fn text(&self, address: u64, limit: usize) -> Option<Part> {
        let mut bytes = Vec::new();
        // Reads one byte more than the limit, since that may be the NUL.
        while bytes.len() <= limit {
            let page = self.page(
                address.wrapping_add(bytes.len() as u64),
                limit + 1 - bytes.len(),
            );
            if page.is_empty() {
                return None;
            }
            let end = page.iter().position(|byte| *byte == 0);
            bytes.extend_from_slice(page.get(..end.unwrap_or(page.len()))?);
            if end.is_some() {
                return Some(Part {
                    bytes,
                    is_truncated: false,
                });
            }
        }
        bytes.truncate(limit);
        Some(Part {
            bytes,
            is_truncated: true,
        })
    }

    fn word(&self, address: u64) -> Option<u64> {
        let word = self.bytes(address, 8, 8)?;
        Some(u64::from_ne_bytes(*word.bytes.first_chunk()?))
    }

    fn texts(&mut self, argument: usize, address: u64, limit: usize) {
        for item in 0..=MAX_TEXTS {
            match self.word(address.wrapping_add(8 * item)) {
                None | Some(0) => return,
                Some(_) if item == MAX_TEXTS => self.add_more(argument, item),
                Some(text_address) => {
                    let text = self.text(text_address, limit);
                    self.add(argument, item as usize, text);
                }
            }
        }
    }

    /// Reads the buffers of a `struct iovec[]`, given by its address and its number of elements. Their items begin at `first`.
    fn vectors(&mut self, argument: usize, first: u16, [address, count]: [u64; 2], limit: usize) {
        for item in 0..count.min(MAX_VECTORS) {
            let vector = address.wrapping_add(16 * item);
            let base_and_length = self.word(vector).zip(self.word(vector.wrapping_add(8)));
            let Some((base, length)) = base_and_length else {
                return;
            };
            let buffer = self.bytes(base, length, limit);
            self.add(argument, usize::from(first) + item as usize, buffer);
        }
        if count > MAX_VECTORS {
            self.add_more(argument, (first + MORE_ITEM).into());
        }
    }

    fn messages(&mut self, argument: usize, address: u64, count: u64, limit: usize) {
        // The count is an `unsigned int`.
        let count = u16::try_from(count & 0xffff_ffff).unwrap_or(MAX_MESSAGES);
        for index in 0..count.min(MAX_MESSAGES) {
            let address = address.wrapping_add(MESSAGE_STRIDE * u64::from(index));
            self.message(argument, index * MESSAGE_ITEMS, address, limit);
        }
    }

    /// Reads a message; its items begin at `first`.
    fn message(&mut self, argument: usize, first: u16, address: u64, limit: usize) {
        let header = self.bytes(address, MESSAGE_SIZE as u64, MESSAGE_SIZE);
        let Some(header) = header else { return };
        let word = |at: usize| {
            let word = header.bytes.get(at..).and_then(|word| word.first_chunk());
            word.map_or(0, |word| u64::from_ne_bytes(*word))
        };
        // `msg_name`, `msg_namelen` (an `int`, followed by padding), `msg_iov` and `msg_iovlen`.
        let (name, length) = (word(0), word(8) & 0xffff_ffff);
        let (vectors, count) = (word(16), word(24));
        if name != 0 && length > 0 {
            let name = self.bytes(name, length, LONGEST_ADDRESS);
            self.add(argument, (first + ADDRESS_ITEM).into(), name);
        }
        self.add(argument, (first + HEADER_ITEM).into(), Some(header));
        self.vectors(argument, first, [vectors, count], limit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Abi, SyscallTable};

    /// Memory from the address 0x1000 on.
    #[derive(Debug)]
    struct Memory(Vec<u8>);

    impl ProcessMemory for Memory {
        fn read(&self, _: u32, address: u64, to: &mut [u8]) -> usize {
            let from = usize::try_from(address.wrapping_sub(0x1000)).unwrap_or(usize::MAX);
            let rest = self.0.get(from..).unwrap_or_default();
            let size = rest.len().min(to.len());
            to[..size].copy_from_slice(&rest[..size]);
            size
        }
    }

    fn read(name: &str, values: &[u64], memory: &[u8]) -> Vec<LateMemory> {
        let table = SyscallTable::of(Abi::X86_64);
        let call = table.get(table.number(name).unwrap()).unwrap();
        let mut arguments = [0; 6];
        arguments[..values.len()].copy_from_slice(values);
        let (thread, string_size) = (1, 4);
        call.late_memory(&Memory(memory.to_vec()), thread, &arguments, string_size)
    }

    fn items(read: &[LateMemory]) -> Vec<(usize, &[u8])> {
        read.iter().map(|one| (one.item, &one.bytes[..])).collect()
    }

    #[test]
    fn texts_end_at_their_nul_and_buffers_at_their_limit() {
        let path = b"/etc/x\0rest".to_vec();
        assert_eq!(
            items(&read("openat", &[0, 0x1000], &path)),
            [(0, &b"/etc/x"[..])]
        );
        assert_eq!(read("openat", &[0, 0x1000], b"no end"), []);
        assert_eq!(read("openat", &[0, 0x9000], &path), []);
        let written = read("write", &[1, 0x1000, 11], &path);
        assert_eq!(items(&written), [(0, &b"/etc"[..])]);
        assert!(written[0].is_truncated);
        assert_eq!(read("execve", &[0x1000, 0, 0], &path), []);
        // A text that is as long as its limit.
        let exact = read("fsopen", &[0x1000], b"abcd\0");
        assert_eq!(
            (items(&exact), exact[0].is_truncated),
            (vec![(0, &b"abcd"[..])], false)
        );
        let longer = read("fsopen", &[0x1000], b"abcde\0");
        assert_eq!(
            (items(&longer), longer[0].is_truncated),
            (vec![(0, &b"abcd"[..])], true)
        );
    }

    #[test]
    fn vectors_and_messages_are_followed() {
        let words = |words: &[u64]| {
            words
                .iter()
                .flat_map(|word| word.to_ne_bytes())
                .collect::<Vec<u8>>()
        };
        // Nine vectors at 0x1000, of which the last seven are empty; at 0x1100, the text that the first two refer to.
        let mut memory = words(&[0x1100, 2, 0x1102, 1]);
        memory.resize(0x100, 0);
        memory.extend(b"abc");
        let vectors = read("writev", &[1, 0x1000, 9], &memory);
        assert_eq!(items(&vectors)[..3], [(0, &b"ab"[..]), (1, b"c"), (2, b"")]);
        assert!(vectors.last().unwrap().marks_more_items && vectors.len() == 9);
        // A message at 0x1000. Its `msg_name` is two bytes at 0x1100. Its only vector is at 0x1080 and refers to all three bytes.
        let mut memory = words(&[0x1100, 2, 0x1080, 1, 0, 0, 0]);
        memory.resize(0x80, 0);
        memory.extend(words(&[0x1100, 3]));
        memory.resize(0x100, 0);
        memory.extend(b"abc");
        let message = read("sendmsg", &[1, 0x1000], &memory);
        let numbers: Vec<usize> = message.iter().map(|one| one.item).collect();
        assert_eq!(numbers, [usize::from(ADDRESS_ITEM), HEADER_ITEM.into(), 0]);
        assert_eq!(
            (&message[0].bytes[..], &message[2].bytes[..]),
            (&b"ab"[..], &b"abc"[..])
        );
    }
}

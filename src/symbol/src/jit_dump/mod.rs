//! `jit-PID.dump`: JIT-compiled code with names, written by runtimes for `perf inject --jit`.
//!
//! Layout: the kernel's tools/perf/Documentation/jitdump-specification.txt. A header of at least 40
//! bytes, then records, each with a header of 16 bytes (type, size, time).

mod code;
mod image;
mod line_program;
mod lines;
mod merged_frames;
mod object_file;
mod reader;

use std::collections::BTreeMap;

pub use code::{JitCode, JitLine};
pub use image::JitImage;
use object::elf::{EM_AARCH64, EM_NONE, EM_X86_64};
pub use object_file::JitObjectFile;
use rustc_hash::FxHashMap;

use self::code::{ByteRange, FunctionParts};
use self::reader::DumpReader;
use crate::builder::{NewSymbol, TableBuilder};
use crate::files::FileBytes;
use crate::names::{NameAt, NameTable};
use crate::symbol::{Binding, NameForm, PackedSymbols, Symbol, SymbolKind};
use crate::table::{AddressKind, SymbolTable};

/// `JiTD`, in the byte order of the writer.
const MAGIC: u32 = 0x4a69_5444;
/// Size of a record's header: type, size of the record, time.
const RECORD_HEADER: usize = 16;
/// `JITDUMP_FLAGS_ARCH_TIMESTAMP`: times are from a CPU counter.
const ARCH_TIMESTAMP: u64 = 1;
/// `JIT_CODE_LOAD`: a function was compiled.
const CODE_LOAD: u32 = 0;
/// `JIT_CODE_MOVE`: a function was moved.
const CODE_MOVE: u32 = 1;
/// `JIT_CODE_DEBUG_INFO`: the lines of the next loaded function.
const CODE_DEBUG_INFO: u32 = 2;
/// `JIT_CODE_UNWINDING_INFO`: frame information of the next loaded function.
const CODE_UNWINDING_INFO: u32 = 4;

/// A parsed dump.
#[derive(Debug)]
pub struct JitDump {
    /// Start of the dump, by its clock; `None` if it is 0, which means unknown.
    pub started: Option<u64>,
    /// Whether times are from a CPU counter, and not those of `CLOCK_MONOTONIC` in nanoseconds.
    pub has_counter_times: bool,
    /// Whether reading stopped before the end of the file: at an incomplete record, as left by a killed process, or at a record
    /// with an invalid size.
    pub truncated: bool,
    functions: Vec<JitFunction>,
    names: NameTable,
    file: FileBytes,
    reader: DumpReader,
    /// `EM_*` of linux/elf-em.h.
    machine: u16,
}

/// A function that was loaded or moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JitFunction {
    /// Time from which it exists, by the clock of the dump.
    pub time: u64,
    /// First address.
    pub start: u64,
    /// End address, exclusive.
    pub end: u64,
    /// Index of its symbol in the table of [`JitDump::into_numbered`]: its own symbol, that of the function before the move, or
    /// that of an earlier function with the same name and range.
    pub number: u32,
    /// The address it was moved from; `None` if it was loaded.
    moved_from: Option<u64>,
    name: NameAt,
    parts: FunctionParts,
}

impl JitFunction {
    fn symbol(&self) -> Symbol {
        Symbol {
            start: self.start,
            end: self.end,
            binding: Binding::Global,
            kind: SymbolKind::Function,
            form: NameForm::Plain,
            name: self.name,
        }
    }
}

impl JitDump {
    /// All functions in file order. If the file is read again after it has grown, its functions start with these.
    #[must_use]
    pub fn functions(&self) -> &[JitFunction] {
        &self.functions
    }

    /// The functions that exist after the last record, by run-time address, and their code. If addresses were reused, the
    /// later function takes precedence.
    #[must_use]
    pub fn last_functions(self) -> (SymbolTable, JitCode) {
        let mut current = CurrentFunctions::default();
        for function in &self.functions {
            if let Some(old) = function.moved_from {
                current.functions.remove(&old);
            }
            current.insert(function);
        }
        let demangle = false;
        let mut builder = TableBuilder::new(demangle);
        // Ascending by address, like the symbols of the table.
        let mut parts = Vec::with_capacity(current.functions.len());
        for function in current.functions.into_values() {
            parts.push(function.parts);
            let new = NewSymbol {
                start: function.start,
                size: function.end - function.start,
                binding: Binding::Global,
                kind: SymbolKind::Function,
                form: NameForm::Plain,
            };
            builder.push(new, self.names.get(function.name).as_bytes());
        }
        let code = JitCode::new(self.file, self.reader, self.machine, parts);
        (builder.finish(AddressKind::Runtime), code)
    }

    /// The symbols of all functions in file order, which [`JitFunction::number`] refers to, and their code. Addresses can't be
    /// looked up in this table.
    #[must_use]
    pub fn into_numbered(self) -> (SymbolTable, JitCode) {
        let mut symbols = PackedSymbols::default();
        let mut parts = Vec::with_capacity(self.functions.len());
        for function in &self.functions {
            symbols.push(&function.symbol());
            parts.push(function.parts);
        }
        let code = JitCode::new(self.file, self.reader, self.machine, parts);
        (SymbolTable::numbered(symbols, self.names), code)
    }
}

/// Reads the functions of a dump; `None` if it is not a dump, or its header is incomplete.
#[must_use]
pub fn parse(file: &FileBytes) -> Option<JitDump> {
    let bytes: &[u8] = file;
    let magic: [u8; 4] = bytes.get(..4)?.try_into().ok()?;
    let reader = DumpReader {
        big: match (u32::from_le_bytes(magic), u32::from_be_bytes(magic)) {
            (MAGIC, _) => false,
            (_, MAGIC) => true,
            _ => return None,
        },
    };
    // The header: magic, version, size of the header, machine, padding, pid; start time, flags.
    let header_size = usize::try_from(reader.word(bytes, 8)?).ok()?;
    let flags = reader.long(bytes, 32)?;
    let mut dump = JitDump {
        started: reader.long(bytes, 24).filter(|&started| started != 0),
        has_counter_times: flags & ARCH_TIMESTAMP != 0,
        truncated: false,
        functions: Vec::new(),
        names: NameTable::default(),
        file: file.clone(),
        reader,
        machine: machine(reader.word(bytes, 12)?),
    };
    bytes.get(header_size..)?;
    let end = dump.read_records(bytes, header_size);
    dump.truncated = end < bytes.len();
    Some(dump)
}

/// Converts the machine in a header to `EM_*`. CPython 3.13.0 writes 0 (`EM_NONE`); as in `perf inject --jit`, the code is then
/// assumed to be for the host. This also applies to numbers of more than 16 bits.
fn machine(number: u32) -> u16 {
    match u16::try_from(number).unwrap_or_default() {
        EM_NONE => HOST_MACHINE,
        machine => machine,
    }
}

/// `EM_*` of this machine; `EM_NONE` if it is neither x86-64 nor aarch64.
const HOST_MACHINE: u16 = if cfg!(target_arch = "x86_64") {
    EM_X86_64
} else if cfg!(target_arch = "aarch64") {
    EM_AARCH64
} else {
    EM_NONE
};

impl JitDump {
    /// Reads the records from `at` on; returns the end of the last complete one.
    fn read_records(&mut self, bytes: &[u8], mut at: usize) -> usize {
        let mut current = CurrentFunctions::default();
        // By range and name: the index of the first function that was loaded with them.
        let mut numbers = FxHashMap::default();
        // The lines and frames for the next JIT_CODE_LOAD.
        let mut pending = FunctionParts::default();
        while let Some(content) = record_at(self.reader, bytes, at) {
            let record = DumpRecord {
                reader: self.reader,
                bytes: content,
                at,
            };
            // Damaged records with a valid size, and empty functions, are skipped.
            let function = match self.reader.word(record.bytes, 0) {
                Some(CODE_LOAD) => record.load(std::mem::take(&mut pending), &mut self.names),
                Some(CODE_MOVE) => current.move_function(self.reader, record.bytes),
                Some(CODE_DEBUG_INFO) => {
                    pending.lines = record.lines().unwrap_or_default();
                    None
                }
                Some(CODE_UNWINDING_INFO) => {
                    pending.frames = record.frames().unwrap_or_default();
                    None
                }
                _ => None,
            };
            if let Some(mut function) = function.filter(|function| function.start < function.end) {
                let name: Box<str> = self.names.get(function.name).into();
                let Ok(next) = u32::try_from(self.functions.len()) else {
                    break;
                };
                if function.moved_from.is_none() {
                    let range = (function.start, function.end);
                    function.number = *numbers.entry((range, name)).or_insert(next);
                }
                current.insert(&function);
                self.functions.push(function);
            }
            at += record.bytes.len();
        }
        at
    }
}

/// The complete record at an offset.
fn record_at(reader: DumpReader, bytes: &[u8], at: usize) -> Option<&[u8]> {
    let rest = bytes.get(at..)?;
    let size = usize::try_from(reader.word(rest, 4)?).ok()?;
    rest.get(..size).filter(|_| size >= RECORD_HEADER)
}

/// One record of a dump.
struct DumpRecord<'a> {
    reader: DumpReader,
    bytes: &'a [u8],
    /// Its offset in the dump.
    at: usize,
}

impl DumpRecord<'_> {
    /// Parses `JIT_CODE_LOAD`. After the header: pid, tid, vma, address, size, number; the NUL-terminated name; the code.
    fn load(&self, pending: FunctionParts, names: &mut NameTable) -> Option<JitFunction> {
        const NAME: usize = RECORD_HEADER + 40;
        let (reader, bytes) = (self.reader, self.bytes);
        let (start, size) = (reader.long(bytes, 32)?, reader.long(bytes, 40)?);
        let name = bytes.get(NAME..)?;
        let name = name.get(..name.iter().position(|&byte| byte == 0)?)?;
        Some(JitFunction {
            time: reader.long(bytes, 8)?,
            start,
            end: start.saturating_add(size),
            // Set by the caller.
            number: 0,
            moved_from: None,
            name: names.push(name)?,
            parts: FunctionParts {
                start,
                code: self.part(NAME + name.len() + 1, reader.length(bytes, 40)?),
                ..pending
            },
        })
    }

    /// Parses `JIT_CODE_DEBUG_INFO`. After the header: the function's address, the number of entries, the entries.
    fn lines(&self) -> Option<ByteRange> {
        const ENTRIES: usize = RECORD_HEADER + 16;
        let to_end_of_record = usize::MAX;
        (self.reader.long(self.bytes, 24)? > 0).then(|| self.part(ENTRIES, to_end_of_record))
    }

    /// Parses `JIT_CODE_UNWINDING_INFO`. After the header: total size of both tables, size of `.eh_frame_hdr`, size mapped after
    /// the code; `.eh_frame`, `.eh_frame_hdr`.
    fn frames(&self) -> Option<ByteRange> {
        const TABLES: usize = RECORD_HEADER + 24;
        let both = self.reader.length(self.bytes, 16)?;
        let header = self.reader.length(self.bytes, 24)?;
        Some(self.part(TABLES, both.checked_sub(header)?))
    }

    /// The range in the dump of the `len` bytes at offset `start` of the record, limited to the record.
    fn part(&self, start: usize, len: usize) -> ByteRange {
        let end = self.bytes.len().min(start.saturating_add(len));
        ByteRange {
            start: self.at + start,
            end: self.at + end.max(start),
        }
    }
}

/// The functions that exist after the records read so far, by start. They do not overlap.
#[derive(Default)]
struct CurrentFunctions {
    functions: BTreeMap<u64, JitFunction>,
}

impl CurrentFunctions {
    /// Parses `JIT_CODE_MOVE`: removes the function at the old address and returns it at the new address; the caller inserts it
    /// there. `None` if there is no such function. After the header: pid, tid, vma, old and new address, size, number.
    fn move_function(&mut self, reader: DumpReader, record: &[u8]) -> Option<JitFunction> {
        let time = reader.long(record, 8)?;
        let (old, start) = (reader.long(record, 32)?, reader.long(record, 40)?);
        let size = reader.long(record, 48)?;
        let function = self.functions.remove(&old)?;
        Some(JitFunction {
            time,
            start,
            end: start.saturating_add(size),
            number: function.number,
            moved_from: Some(old),
            name: function.name,
            parts: function.parts,
        })
    }

    /// Adds a function and removes those it overlaps.
    fn insert(&mut self, function: &JitFunction) {
        let before = self.functions.range(..function.end).rev();
        let covered = before.take_while(|(_, old)| old.end > function.start);
        let covered: Vec<u64> = covered.map(|(&start, _)| start).collect();
        for old in covered {
            self.functions.remove(&old);
        }
        self.functions.insert(function.start, *function);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use object::Object as _;

    use super::*;
    use crate::table::SymbolIndex;

    /// Writer of a dump in either byte order.
    struct Writer {
        big: bool,
        bytes: Vec<u8>,
    }

    impl Writer {
        fn new(big: bool) -> Self {
            let mut writer = Self {
                big,
                bytes: Vec::new(),
            };
            // Magic, version, size of the header, machine, padding, pid; start time, flags.
            writer.words(&[MAGIC, 1, 40, EM_X86_64.into(), 0, 77]);
            writer.longs(&[1, 0]);
            writer
        }

        fn words(&mut self, words: &[u32]) {
            for word in words {
                self.bytes.extend(if self.big {
                    word.to_be_bytes()
                } else {
                    word.to_le_bytes()
                });
            }
        }

        fn longs(&mut self, longs: &[u64]) {
            for long in longs {
                self.bytes.extend(if self.big {
                    long.to_be_bytes()
                } else {
                    long.to_le_bytes()
                });
            }
        }

        fn load(&mut self, start: u64, size: u64, name: &str) {
            let len = 16 + 40 + name.len() + 1 + size as usize;
            self.words(&[CODE_LOAD, len as u32]);
            self.longs(&[5]);
            self.words(&[77, 77]);
            self.longs(&[start, start, size, 0]);
            self.bytes.extend(name.as_bytes());
            self.bytes.extend(vec![0; 1 + size as usize]);
        }

        fn lines(&mut self, entries: &[(u64, u32, &str)]) {
            let names: usize = entries.iter().map(|(_, _, name)| name.len() + 1).sum();
            let len = 32 + 16 * entries.len() + names;
            self.words(&[CODE_DEBUG_INFO, len as u32]);
            self.longs(&[5, 0x1000, entries.len() as u64]);
            for (address, line, name) in entries {
                self.longs(&[*address]);
                self.words(&[*line, 0]);
                self.bytes.extend(name.as_bytes());
                self.bytes.push(0);
            }
        }

        fn moved(&mut self, old: u64, new: u64, size: u64) {
            self.words(&[CODE_MOVE, 16 + 48]);
            self.longs(&[6]);
            self.words(&[77, 77]);
            self.longs(&[new, old, new, size, 0]);
        }
    }

    fn read(bytes: &[u8]) -> Option<JitDump> {
        parse(&bytes.to_vec().into())
    }

    /// Returns the start, the end and the name of each function that exists after the last record.
    fn ranges_and_names(bytes: &[u8]) -> Vec<(u64, u64, String)> {
        let (table, _) = read(bytes).expect("a dump").last_functions();
        let all = table.iter();
        all.map(|(at, symbol)| (symbol.start, symbol.end, table.name(at).into_owned()))
            .collect()
    }

    #[test]
    fn functions_are_loaded_moved_and_replaced() {
        for big in [false, true] {
            let mut writer = Writer::new(big);
            writer.load(0x1000, 0x20, "first");
            writer.load(0x1020, 0x10, "second");
            // A damaged record, which is skipped.
            writer.words(&[CODE_UNWINDING_INFO, 24]);
            writer.longs(&[7, 8]);
            writer.moved(0x1020, 0x3000, 0x10);
            writer.load(0x1010, 8, "later");
            let dump = read(&writer.bytes).expect("a dump");
            let expected = [
                (0x1010, 0x1018, "later".to_owned()),
                (0x3000, 0x3010, "second".to_owned()),
            ];
            assert_eq!(ranges_and_names(&writer.bytes), expected);
            assert!(!dump.truncated && dump.started == Some(1) && !dump.has_counter_times);
            let object = dump.object_file();
            let entry = object::File::parse(&*object.bytes).unwrap().entry();
            assert_eq!(object.offsets[0], Some(entry));
            let all: Vec<_> = dump.functions().iter().map(|f| (f.time, f.start)).collect();
            assert_eq!(all, [(5, 0x1000), (5, 0x1020), (6, 0x3000), (5, 0x1010)]);
            let (numbered, _) = dump.into_numbered();
            let third = SymbolIndex::new(2).expect("an index");
            assert_eq!(numbered.name(third), "second");
            assert!(numbered.find(0x1010).is_none());
            let size = writer.bytes.len();
            let truncated = read(&writer.bytes[..size - 1]).expect("a dump");
            assert!(truncated.truncated && truncated.last_functions().0.len() == 2);
        }
        assert!(read(b"DTiJ").is_none() && read(b"ELF?").is_none());
    }

    #[test]
    fn lines_and_unwind_info_belong_to_the_next_function() {
        for big in [false, true] {
            let mut writer = Writer::new(big);
            // Of two entries for one address, the last applies.
            writer.lines(&[
                (0x1000, 7, "a.js"),
                (0x1004, 9, "other.js"),
                (0x1004, 8, "b.js"),
            ]);
            // Six bytes of `.eh_frame` (`frames`), two of `.eh_frame_hdr` (`ix`).
            writer.words(&[CODE_UNWINDING_INFO, 16 + 24 + 8]);
            writer.longs(&[5, 8, 2, 0]);
            writer.bytes.extend(b"framesix");
            writer.load(0x1000, 8, "described");
            writer.load(0x2000, 8, "plain");
            writer.moved(0x1000, 0x3000, 8);
            let dump = read(&writer.bytes).expect("a dump");
            // By address: `described` was moved behind `plain`.
            let (plain, described) = (SymbolIndex::new(0), SymbolIndex::new(1));
            let (plain, described) = (plain.expect("an index"), described.expect("an index"));
            let (table, code) = dump.last_functions();
            assert_eq!(table.name(described), "described");
            let line = |offset| {
                code.line(described, offset)
                    .map(|line| (line.file, line.line))
            };
            assert_eq!(line(0), Some(("a.js", 7)));
            assert_eq!(line(3), Some(("a.js", 7)));
            assert_eq!(
                line(6),
                Some(("b.js", 8)),
                "lines are relative to the address of JIT_CODE_LOAD"
            );
            assert_eq!(code.line(plain, 0), None);
            // `.eh_frame` follows the code at 0x80.
            let frames =
                |function| code.image(function).expect("a file").file[0x88..][..6].to_vec();
            assert_eq!(frames(described), b"frames");
            assert_ne!(frames(plain), b"frames");
        }
    }

    #[test]
    fn em_none_means_the_host_machine() {
        for (written, expected) in [
            (EM_NONE, HOST_MACHINE),
            (EM_AARCH64, EM_AARCH64),
            (EM_X86_64, EM_X86_64),
        ] {
            let mut writer = Writer::new(false);
            writer.load(0x1000, 8, "f");
            writer.bytes[12..16].copy_from_slice(&u32::from(written).to_le_bytes());
            let (_, code) = read(&writer.bytes).expect("a dump").last_functions();
            let first = SymbolIndex::new(0).expect("an index");
            let image = code.image(first).expect("a file").file;
            assert_eq!(image[18..20], u16::to_le_bytes(expected), "{written}");
        }
    }

    #[test]
    fn line_entries_may_repeat_the_previous_file_name() {
        let reader = DumpReader { big: false };
        let entry = |address: u64, name: &[u8]| {
            [&address.to_le_bytes()[..], &[3, 0, 0, 0, 0, 0, 0, 0], name].concat()
        };
        let bytes = [
            entry(1, b"a.js\0"),
            entry(2, b"\xff\0"),
            entry(3, b"truncated"),
        ]
        .concat();
        let entries: Vec<_> = lines::LineEntries::new(reader, &bytes).collect();
        assert_eq!(entries.len(), 2);
        assert!(
            entries
                .iter()
                .all(|entry| entry.file == b"a.js" && entry.line == 3)
        );
    }

    proptest! {
        #[test]
        fn damaged_dumps_do_not_panic(at in 0usize..300, byte: u8, len in 0usize..300) {
            let mut writer = Writer::new(false);
            writer.lines(&[(0x1000, 7, "a.js")]);
            writer.load(0x1000, 0x20, "first");
            writer.moved(0x1000, u64::MAX - 4, 0x10);
            writer.load(0x1020, 0x10, "second");
            let mut bytes = writer.bytes;
            let at = at % bytes.len();
            bytes[at] = byte;
            bytes.truncate(len.max(4));
            if let Some(dump) = read(&bytes) {
                let (table, code) = dump.last_functions();
                for (index, _) in table.iter() {
                    let _ = (code.line(index, 1), code.image(index));
                }
            }
        }
    }
}

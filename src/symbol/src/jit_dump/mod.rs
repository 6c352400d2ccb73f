//! `jit-PID.dump`: code made at run time, with names, as runtimes write it for `perf inject --jit`.
//!
//! The layout is that of the kernel's tools/perf/Documentation/jitdump-specification.txt: a header of 40 bytes or more,
//! then records, each with a header of 16 bytes (kind, size, time).

mod code;
mod image;
mod lines;
mod reader;

use std::collections::BTreeMap;

pub use code::{JitCode, JitLine};
pub use image::JitImage;
use rustc_hash::FxHashMap;

use self::code::{Body, Part};
use self::reader::Reader;
use crate::builder::{NewSymbol, TableBuilder};
use crate::files::FileBytes;
use crate::names::{NameAt, Names};
use crate::symbol::{Binding, NameForm, Symbol, SymbolKind, Symbols};
use crate::table::{AddressSpace, SymbolTable};

/// `JiTD`, in the byte order of who wrote it.
const MAGIC: u32 = 0x4a69_5444;
/// Bytes of a record's header: kind, size of the whole record, time.
const RECORD_HEADER: usize = 16;
/// `JITDUMP_FLAGS_ARCH_TIMESTAMP`: times are of a processor's counter.
const ARCH_TIMESTAMP: u64 = 1;
/// `JIT_CODE_LOAD`: a function was made.
const CODE_LOAD: u32 = 0;
/// `JIT_CODE_MOVE`: a function was put elsewhere.
const CODE_MOVE: u32 = 1;
/// `JIT_CODE_DEBUG_INFO`: the lines of the function that is loaded next.
const CODE_DEBUG_INFO: u32 = 2;
/// `JIT_CODE_UNWINDING_INFO`: its frames.
const CODE_UNWINDING_INFO: u32 = 4;

/// A parsed dump.
#[derive(Debug)]
pub struct JitDump {
    /// When it was begun, in nanoseconds of `CLOCK_MONOTONIC`; `None` where its times are of another clock.
    pub begun: Option<u64>,
    /// Whether it ends in the middle of a record, as that of a killed process does.
    pub cut: bool,
    functions: Vec<JitFunction>,
    names: Names,
    file: FileBytes,
    reader: Reader,
    /// `EM_*` of linux/elf-em.h.
    machine: u16,
}

/// A function that was made, or moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JitFunction {
    /// Since when it is there, by the clock of [`JitDump::begun`].
    pub time: u64,
    /// First address.
    pub start: u64,
    /// First address behind it.
    pub end: u64,
    /// Its number in [`JitDump::into_numbered`]: its own, or that of the function that was moved, or of an earlier one
    /// with its name and range.
    pub number: u32,
    /// Where it was moved from.
    moved_from: Option<u64>,
    name: NameAt,
    body: Body,
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
    /// All functions, in the order of the file. A longer state of the same dump has the same ones first.
    #[must_use]
    pub fn functions(&self) -> &[JitFunction] {
        &self.functions
    }

    /// Those at the end of the dump, by run-time address, and their code. Where an address was used again, the later
    /// function counts.
    #[must_use]
    pub fn last_functions(self) -> (SymbolTable, JitCode) {
        let mut code = Code::default();
        for function in &self.functions {
            if let Some(old) = function.moved_from {
                code.functions.remove(&old);
            }
            code.put(function);
        }
        let mut builder = TableBuilder::new(false);
        let mut bodies = Vec::with_capacity(code.functions.len());
        for function in code.functions.into_values() {
            bodies.push(function.body);
            let new = NewSymbol {
                start: function.start,
                size: function.end - function.start,
                binding: Binding::Global,
                kind: SymbolKind::Function,
                form: NameForm::Plain,
            };
            builder.push(new, self.names.get(function.name).as_bytes());
        }
        let code = JitCode::new(self.file, self.reader, self.machine, bodies);
        (builder.finish(AddressSpace::Runtime), code)
    }

    /// A table in which a function is at the position of its number, and the functions' code. No address is found in it.
    #[must_use]
    pub fn into_numbered(self) -> (SymbolTable, JitCode) {
        let mut symbols = Symbols::default();
        let mut bodies = Vec::with_capacity(self.functions.len());
        for function in &self.functions {
            symbols.push(&function.symbol());
            bodies.push(function.body);
        }
        let code = JitCode::new(self.file, self.reader, self.machine, bodies);
        (SymbolTable::numbered(symbols, self.names), code)
    }
}

/// Reads the functions of a dump; `None` for what is none.
#[must_use]
pub fn parse(file: &FileBytes) -> Option<JitDump> {
    let bytes: &[u8] = file;
    let magic: [u8; 4] = bytes.get(..4)?.try_into().ok()?;
    let reader = Reader {
        big: match (u32::from_le_bytes(magic), u32::from_be_bytes(magic)) {
            (MAGIC, _) => false,
            (_, MAGIC) => true,
            _ => return None,
        },
    };
    let header = usize::try_from(reader.word(bytes, 8)?).ok()?;
    let flags = reader.long(bytes, 32)?;
    let mut dump = JitDump {
        begun: reader
            .long(bytes, 24)
            .filter(|&begun| begun != 0 && flags & ARCH_TIMESTAMP == 0),
        cut: false,
        functions: Vec::new(),
        names: Names::default(),
        file: file.clone(),
        reader,
        machine: u16::try_from(reader.word(bytes, 12)?).unwrap_or_default(),
    };
    bytes.get(header..)?;
    let behind = dump.read_records(bytes, header);
    dump.cut = behind < bytes.len();
    Some(dump)
}

impl JitDump {
    /// Reads the records from `at` on; returns where the last whole one ends.
    fn read_records(&mut self, bytes: &[u8], mut at: usize) -> usize {
        let mut code = Code::default();
        let mut numbers = FxHashMap::default();
        let mut announced = Body::default();
        while let Some(record) = record_at(self.reader, bytes, at) {
            let here = Record {
                reader: self.reader,
                bytes: record,
                at,
            };
            // A damaged record is passed over: the next one begins where this one says.
            let function = match self.reader.word(record, 0) {
                Some(CODE_LOAD) => here.load(std::mem::take(&mut announced), &mut self.names),
                Some(CODE_MOVE) => code.moved(self.reader, record),
                Some(CODE_DEBUG_INFO) => {
                    announced.lines = here.lines().unwrap_or_default();
                    None
                }
                Some(CODE_UNWINDING_INFO) => {
                    announced.frames = here.frames().unwrap_or_default();
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
                code.put(&function);
                self.functions.push(function);
            }
            at += record.len();
        }
        at
    }
}

/// The whole record at an offset.
fn record_at(reader: Reader, bytes: &[u8], at: usize) -> Option<&[u8]> {
    let rest = bytes.get(at..)?;
    let size = usize::try_from(reader.word(rest, 4)?).ok()?;
    rest.get(..size).filter(|_| size >= RECORD_HEADER)
}

/// One record of a dump.
struct Record<'a> {
    reader: Reader,
    bytes: &'a [u8],
    /// Where it is in the dump.
    at: usize,
}

impl Record<'_> {
    /// Behind the header: pid, tid, vma, address, size, number; the name, zero-terminated; the code.
    fn load(&self, announced: Body, names: &mut Names) -> Option<JitFunction> {
        const NAME: usize = RECORD_HEADER + 40;
        let (reader, bytes) = (self.reader, self.bytes);
        let (start, size) = (reader.long(bytes, 32)?, reader.long(bytes, 40)?);
        let name = bytes.get(NAME..)?;
        let name = name.get(..name.iter().position(|&byte| byte == 0)?)?;
        Some(JitFunction {
            time: reader.long(bytes, 8)?,
            start,
            end: start.saturating_add(size),
            number: 0,
            moved_from: None,
            name: names.push(name)?,
            body: Body {
                start,
                code: self.part(NAME + name.len() + 1, reader.length(bytes, 40)?),
                ..announced
            },
        })
    }

    /// Behind the header: the function's address, the number of entries, the entries.
    fn lines(&self) -> Option<Part> {
        const ENTRIES: usize = RECORD_HEADER + 16;
        (self.reader.long(self.bytes, 24)? > 0).then(|| self.part(ENTRIES, usize::MAX))
    }

    /// Behind the header: the size of both tables, that of `.eh_frame_hdr`, how much of them is mapped behind the code;
    /// `.eh_frame`, `.eh_frame_hdr`.
    fn frames(&self) -> Option<Part> {
        const TABLES: usize = RECORD_HEADER + 24;
        let both = self.reader.length(self.bytes, 16)?;
        let header = self.reader.length(self.bytes, 24)?;
        Some(self.part(TABLES, both.checked_sub(header)?))
    }

    /// `len` bytes from `start` on, or what the record has of them.
    fn part(&self, start: usize, len: usize) -> Part {
        let end = self.bytes.len().min(start.saturating_add(len));
        Part {
            start: self.at + start,
            end: self.at + end.max(start),
        }
    }
}

/// The functions that are there, by start. They don't overlap.
#[derive(Default)]
struct Code {
    functions: BTreeMap<u64, JitFunction>,
}

impl Code {
    /// Behind the header: pid, tid, vma, the old and the new address, size, number.
    fn moved(&mut self, reader: Reader, record: &[u8]) -> Option<JitFunction> {
        let time = reader.long(record, 8)?;
        let body = record.get(RECORD_HEADER..)?;
        let (old, start) = (reader.long(body, 16)?, reader.long(body, 24)?);
        let size = reader.long(body, 32)?;
        let function = self.functions.remove(&old)?;
        Some(JitFunction {
            time,
            start,
            end: start.saturating_add(size),
            number: function.number,
            moved_from: Some(old),
            name: function.name,
            body: function.body,
        })
    }

    /// Puts a function in the place of those that it covers a part of.
    fn put(&mut self, function: &JitFunction) {
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

    use super::*;
    use crate::table::SymbolIndex;

    /// A dump in either byte order.
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
            writer.words(&[MAGIC, 1, 40, 62, 0, 77]);
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

    fn names(bytes: &[u8]) -> Vec<(u64, u64, String)> {
        let (table, _) = read(bytes).expect("a dump").last_functions();
        let all = table.iter();
        all.map(|(at, symbol)| (symbol.start, symbol.end, table.name(at).into_owned()))
            .collect()
    }

    #[test]
    fn functions_that_are_loaded_moved_and_replaced() {
        for big in [false, true] {
            let mut writer = Writer::new(big);
            writer.load(0x1000, 0x20, "first");
            writer.load(0x1020, 0x10, "second");
            writer.words(&[4, 24]);
            writer.longs(&[7, 8]);
            writer.moved(0x1020, 0x3000, 0x10);
            writer.load(0x1010, 8, "later");
            let dump = read(&writer.bytes).expect("a dump");
            let expected = [
                (0x1010, 0x1018, "later".to_owned()),
                (0x3000, 0x3010, "second".to_owned()),
            ];
            assert_eq!(names(&writer.bytes), expected);
            assert!(!dump.cut && dump.begun == Some(1));
            let all: Vec<_> = dump.functions().iter().map(|f| (f.time, f.start)).collect();
            assert_eq!(all, [(5, 0x1000), (5, 0x1020), (6, 0x3000), (5, 0x1010)]);
            let (numbered, _) = dump.into_numbered();
            let third = SymbolIndex::new(2).expect("an index");
            assert_eq!(numbered.name(third), "second");
            assert!(numbered.find(0x1010).is_none());
            let whole = writer.bytes.len();
            let cut = read(&writer.bytes[..whole - 1]).expect("a dump");
            assert!(cut.cut && cut.last_functions().0.len() == 2);
        }
        assert!(read(b"DTiJ").is_none() && read(b"ELF?").is_none());
    }

    #[test]
    fn lines_and_frames_are_those_of_the_next_function() {
        for big in [false, true] {
            let mut writer = Writer::new(big);
            writer.lines(&[
                (0x1000, 7, "a.js"),
                (0x1004, 9, "\u{1}"),
                (0x1004, 8, "b.js"),
            ]);
            // Six bytes of `.eh_frame`, two of its index.
            writer.words(&[CODE_UNWINDING_INFO, 16 + 24 + 8]);
            writer.longs(&[5, 8, 2, 0]);
            writer.bytes.extend(b"framesix");
            writer.load(0x1000, 8, "told");
            writer.load(0x2000, 8, "silent");
            writer.moved(0x1000, 0x3000, 8);
            let dump = read(&writer.bytes).expect("a dump");
            let (silent, told) = (SymbolIndex::new(0), SymbolIndex::new(1));
            let (silent, told) = (silent.expect("an index"), told.expect("an index"));
            let (table, code) = dump.last_functions();
            assert_eq!(table.name(told), "told");
            let line = |offset| {
                code.line(told, offset)
                    .map(|found| (found.file, found.line))
            };
            assert_eq!(line(0), Some(("a.js", 7)));
            assert_eq!(line(3), Some(("a.js", 7)));
            assert_eq!(
                line(6),
                Some(("b.js", 8)),
                "where it was loaded, not where it is"
            );
            assert_eq!(code.line(silent, 0), None);
            let frames =
                |function| code.image(function).expect("a file").file[0x88..][..6].to_vec();
            assert_eq!(frames(told), b"frames");
            assert_ne!(frames(silent), b"frames");
        }
    }

    #[test]
    fn a_name_may_be_that_of_the_entry_before() {
        let reader = Reader { big: false };
        let entry = |address: u64, name: &[u8]| {
            [&address.to_le_bytes()[..], &[3, 0, 0, 0, 0, 0, 0, 0], name].concat()
        };
        let bytes = [entry(1, b"a.js\0"), entry(2, b"\xff\0"), entry(3, b"cut")].concat();
        let entries: Vec<_> = lines::Entries::new(reader, &bytes).collect();
        assert_eq!(entries.len(), 2);
        assert!(
            entries
                .iter()
                .all(|entry| entry.file == b"a.js" && entry.line == 3)
        );
    }

    proptest! {
        #[test]
        fn no_damage_panics(at in 0usize..300, byte: u8, len in 0usize..300) {
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

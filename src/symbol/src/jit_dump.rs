//! `jit-PID.dump`: code made at run time, with names, as runtimes write it for `perf inject --jit`.
//!
//! The layout is that of the kernel's tools/perf/Documentation/jitdump-specification.txt: a header of 40 bytes or more,
//! then records, each with a header of 16 bytes (kind, size, time).

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::builder::{NewSymbol, TableBuilder};
use crate::names::{NameAt, Names};
use crate::symbol::{Binding, NameForm, Symbol, Symbols};
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

/// A parsed dump.
#[derive(Debug)]
pub struct JitDump {
    /// When it was begun, in nanoseconds of `CLOCK_MONOTONIC`; `None` where its times are of another clock.
    pub begun: Option<u64>,
    /// Whether it ends in the middle of a record, as that of a killed process does.
    pub cut: bool,
    functions: Vec<JitFunction>,
    names: Names,
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
}

impl JitFunction {
    fn symbol(&self) -> Symbol {
        Symbol {
            start: self.start,
            end: self.end,
            binding: Binding::Global,
            is_function: true,
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

    /// Those at the end of the dump, by run-time address. Where an address was used again, the later function counts.
    #[must_use]
    pub fn last_functions(&self) -> SymbolTable {
        let mut code = Code::default();
        for function in &self.functions {
            if let Some(old) = function.moved_from {
                code.functions.remove(&old);
            }
            code.put(function);
        }
        let mut builder = TableBuilder::new(false);
        for function in code.functions.into_values() {
            let new = NewSymbol {
                start: function.start,
                size: function.end - function.start,
                binding: Binding::Global,
                is_function: true,
                form: NameForm::Plain,
            };
            builder.push(new, self.names.get(function.name).as_bytes());
        }
        builder.finish(AddressSpace::Runtime)
    }

    /// A table in which a function is at the position of its number. No address is found in it.
    #[must_use]
    pub fn into_numbered(self) -> SymbolTable {
        let mut symbols = Symbols::default();
        for function in &self.functions {
            symbols.push(&function.symbol());
        }
        SymbolTable::numbered(symbols, self.names)
    }
}

/// Reads the functions of a dump; `None` for what is none.
#[must_use]
pub fn parse(bytes: &[u8]) -> Option<JitDump> {
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
    let mut rest = bytes.get(header..)?;
    let mut dump = JitDump {
        begun: reader
            .long(bytes, 24)
            .filter(|&begun| begun != 0 && flags & ARCH_TIMESTAMP == 0),
        cut: false,
        functions: Vec::new(),
        names: Names::default(),
    };
    let mut code = Code::default();
    let mut numbers = FxHashMap::default();
    while let Some(size) = reader
        .word(rest, 4)
        .and_then(|size| usize::try_from(size).ok())
    {
        let Some((record, behind)) = rest
            .split_at_checked(size)
            .filter(|_| size >= RECORD_HEADER)
        else {
            break;
        };
        // A damaged record is passed over: the next one begins where this one says.
        let function = match reader.word(record, 0) {
            Some(CODE_LOAD) => load(reader, record, &mut dump.names),
            Some(CODE_MOVE) => code.moved(reader, record),
            _ => None,
        };
        if let Some(mut function) = function.filter(|function| function.start < function.end) {
            let name: Box<str> = dump.names.get(function.name).into();
            let next = u32::try_from(dump.functions.len()).ok()?;
            if function.moved_from.is_none() {
                let range = (function.start, function.end);
                function.number = *numbers.entry((range, name)).or_insert(next);
            }
            code.put(&function);
            dump.functions.push(function);
        }
        rest = behind;
    }
    dump.cut = !rest.is_empty();
    Some(dump)
}

/// Behind the header: pid, tid, vma, address, size, number; the name, zero-terminated; the code.
fn load(reader: Reader, record: &[u8], names: &mut Names) -> Option<JitFunction> {
    let time = reader.long(record, 8)?;
    let body = record.get(RECORD_HEADER..)?;
    let (start, size) = (reader.long(body, 16)?, reader.long(body, 24)?);
    let name = body.get(40..)?;
    let name = name.get(..name.iter().position(|&byte| byte == 0)?)?;
    Some(JitFunction {
        time,
        start,
        end: start.saturating_add(size),
        number: 0,
        moved_from: None,
        name: names.push(name)?,
    })
}

/// Numbers in the dump's byte order.
#[derive(Debug, Clone, Copy)]
struct Reader {
    big: bool,
}

impl Reader {
    fn word(self, bytes: &[u8], at: usize) -> Option<u32> {
        let bytes: [u8; 4] = bytes.get(at..)?.get(..4)?.try_into().ok()?;
        Some(if self.big {
            u32::from_be_bytes(bytes)
        } else {
            u32::from_le_bytes(bytes)
        })
    }

    fn long(self, bytes: &[u8], at: usize) -> Option<u64> {
        let bytes: [u8; 8] = bytes.get(at..)?.get(..8)?.try_into().ok()?;
        Some(if self.big {
            u64::from_be_bytes(bytes)
        } else {
            u64::from_le_bytes(bytes)
        })
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

        fn moved(&mut self, old: u64, new: u64, size: u64) {
            self.words(&[CODE_MOVE, 16 + 48]);
            self.longs(&[6]);
            self.words(&[77, 77]);
            self.longs(&[new, old, new, size, 0]);
        }
    }

    fn names(dump: &JitDump) -> Vec<(u64, u64, String)> {
        let table = dump.last_functions();
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
            let dump = parse(&writer.bytes).expect("a dump");
            let expected = [
                (0x1010, 0x1018, "later".to_owned()),
                (0x3000, 0x3010, "second".to_owned()),
            ];
            assert_eq!(names(&dump), expected);
            assert!(!dump.cut && dump.begun == Some(1));
            let all: Vec<_> = dump.functions().iter().map(|f| (f.time, f.start)).collect();
            assert_eq!(all, [(5, 0x1000), (5, 0x1020), (6, 0x3000), (5, 0x1010)]);
            let numbered = dump.into_numbered();
            let third = SymbolIndex::new(2).expect("an index");
            assert_eq!(numbered.name(third), "second");
            assert!(numbered.find(0x1010).is_none());
            let whole = writer.bytes.len();
            let cut = parse(&writer.bytes[..whole - 1]).expect("a dump");
            assert!(cut.cut && cut.last_functions().len() == 2);
        }
        assert!(parse(b"DTiJ").is_none() && parse(b"ELF?").is_none());
    }

    proptest! {
        #[test]
        fn no_damage_panics(at in 0usize..300, byte: u8, len in 0usize..300) {
            let mut writer = Writer::new(false);
            writer.load(0x1000, 0x20, "first");
            writer.moved(0x1000, u64::MAX - 4, 0x10);
            writer.load(0x1020, 0x10, "second");
            let mut bytes = writer.bytes;
            let at = at % bytes.len();
            bytes[at] = byte;
            bytes.truncate(len.max(4));
            if let Some(dump) = parse(&bytes) {
                let _ = dump.last_functions();
            }
        }
    }
}

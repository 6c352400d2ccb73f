//! `jit-PID.dump`: code made at run time, with names, as runtimes write it for `perf inject --jit`.
//!
//! The layout is that of the kernel's tools/perf/Documentation/jitdump-specification.txt: a header of 40 bytes or more,
//! then records, each with a header of 16 bytes (kind, size, time).

use std::collections::BTreeMap;

use crate::builder::{NewSymbol, TableBuilder};
use crate::table::{AddressSpace, Binding, NameForm, SymbolTable};

/// `JiTD`, in the byte order of who wrote it.
const MAGIC: u32 = 0x4a69_5444;
/// Bytes of a record's header: kind, size of the whole record, time.
const RECORD_HEADER: usize = 16;
/// `JIT_CODE_LOAD`: a function was made.
const CODE_LOAD: u32 = 0;
/// `JIT_CODE_MOVE`: a function was put elsewhere.
const CODE_MOVE: u32 = 1;

/// A parsed dump.
#[derive(Debug)]
pub struct JitDump {
    /// Its functions, at run-time addresses. Where an address was used again, the later function counts.
    pub table: SymbolTable,
    /// Whether it ends in the middle of a record, as that of a killed process does.
    pub cut: bool,
}

/// Reads the functions of a dump; `None` for what is none.
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
    let mut rest = bytes.get(header..)?;
    let mut code = Code::default();
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
        let body = record.get(RECORD_HEADER..).unwrap_or_default();
        match reader.word(record, 0) {
            Some(CODE_LOAD) => _ = code.load(reader, body),
            Some(CODE_MOVE) => _ = code.moved(reader, body),
            _ => {}
        }
        rest = behind;
    }
    Some(JitDump {
        table: code.finish(),
        cut: !rest.is_empty(),
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
struct Code<'a> {
    functions: BTreeMap<u64, (u64, &'a [u8])>,
}

impl<'a> Code<'a> {
    /// pid, tid, vma, address, size, number; the name, zero-terminated; the code.
    fn load(&mut self, reader: Reader, body: &'a [u8]) -> Option<()> {
        let (start, size) = (reader.long(body, 16)?, reader.long(body, 24)?);
        let name = body.get(40..)?;
        let name = name.get(..name.iter().position(|&byte| byte == 0)?)?;
        self.put(start, size, name);
        Some(())
    }

    /// pid, tid, vma, the old and the new address, size, number.
    fn moved(&mut self, reader: Reader, body: &[u8]) -> Option<()> {
        let (old, new) = (reader.long(body, 16)?, reader.long(body, 24)?);
        let size = reader.long(body, 32)?;
        let (_, name) = self.functions.remove(&old)?;
        self.put(new, size, name);
        Some(())
    }

    /// Puts a function in the place of those that it covers a part of.
    fn put(&mut self, start: u64, size: u64, name: &'a [u8]) {
        let end = start.saturating_add(size);
        let before = self.functions.range(..end).rev();
        let covered = before.take_while(|(_, (old_end, _))| *old_end > start);
        let covered: Vec<u64> = covered.map(|(&start, _)| start).collect();
        for old in covered {
            self.functions.remove(&old);
        }
        if start < end {
            self.functions.insert(start, (end, name));
        }
    }

    fn finish(self) -> SymbolTable {
        let mut builder = TableBuilder::new(false);
        for (start, (end, name)) in self.functions {
            let new = NewSymbol {
                start,
                size: end - start,
                binding: Binding::Global,
                is_function: true,
                form: NameForm::Plain,
            };
            builder.push(new, name);
        }
        builder.finish(AddressSpace::Runtime)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
        let all = dump.table.iter();
        all.map(|(at, symbol)| (symbol.start, symbol.end, dump.table.name(at).into_owned()))
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
            assert!(!dump.cut);
            let whole = writer.bytes.len();
            let cut = parse(&writer.bytes[..whole - 1]).expect("a dump");
            assert!(cut.cut && cut.table.len() == 2);
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
            parse(&bytes);
        }
    }
}

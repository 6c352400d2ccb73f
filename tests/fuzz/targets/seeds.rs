//! Writes initial inputs for fuzz targets; it is not a target itself. Its input is an object file, which the fuzzer
//! passes on unchanged. It writes the file `$SEED` in the format of `Parts`: the sections of the object, those of its split
//! DWARF file, whose path is in `$SPLIT`, and the probe definitions, whose text is in `$DEFINITIONS` (both variables are
//! optional); then registers and a stack. If `$DUMP` is set, it also writes an input for the target `listings` to this path: a
//! jitdump, and lines of a perf map and of kallsyms.

#![no_main]

use std::{env, fs};

use libfuzzer_sys::fuzz_target;
use object::{Object as _, ObjectSection as _};
use rperf_fuzz::{Extra, Layout, Parts, Section};

/// The maximum size of a section in bytes; the rest is dropped.
const MAX_CONTENT_BYTES: usize = 12_000;

fuzz_target!(|file: &[u8]| {
    if file.is_empty() {
        return;
    }
    let split =
        env::var("SPLIT").map(|path| fs::read(path).expect("a file with split debug information"));
    let split = split.unwrap_or_default();
    let mut bytes = Parts::write(Layout::of_file(file), &sections(file), &sections(&split));
    if let Ok(definitions) = env::var("DEFINITIONS") {
        Parts::add(&mut bytes, Extra::Definitions, definitions.as_bytes());
    }
    // Registers that point to the stack or near it, and a stack of addresses in the object, which the target `frames` maps at
    // 0x400000.
    let numbers =
        |first: u64, count: u64| (0..count).flat_map(move |n| (first + n * 16).to_le_bytes());
    Parts::add(
        &mut bytes,
        Extra::Registers,
        &numbers(0x7fff_0000, 12).collect::<Vec<u8>>(),
    );
    Parts::add(
        &mut bytes,
        Extra::Stack,
        &numbers(0x40_1000, 40).collect::<Vec<u8>>(),
    );
    fs::write(env::var("SEED").expect("a path in $SEED"), bytes)
        .expect("a file that can be written");
    if let Ok(path) = env::var("DUMP") {
        fs::write(path, dump()).expect("a file that can be written");
    }
});

fn sections(file: &[u8]) -> Vec<Section<'_>> {
    let Ok(file) = object::File::parse(file) else {
        return Vec::new();
    };
    let sections = file.sections().filter_map(|section| {
        let name = section.name().ok()?;
        let content = section.data().ok()?;
        Some(Section {
            // Leaking the name does no harm, since the program exits soon.
            name: name.trim_end_matches(".dwo").to_owned().leak(),
            address: section.address(),
            content: &content[..content.len().min(MAX_CONTENT_BYTES)],
        })
    });
    sections.collect()
}

/// Returns a jitdump (jitdump-specification.txt) of two functions, of which the first has a line and unwind information and is
/// moved to another address, followed by lines of a perf map and of kallsyms.
fn dump() -> Vec<u8> {
    const LOAD: u32 = 0;
    const MOVE: u32 = 1;
    const DEBUG_INFO: u32 = 2;
    const UNWINDING_INFO: u32 = 4;
    let mut out = Vec::new();
    // Magic number, version, size of the header, machine (x86-64), padding, pid; time and flags.
    words(&mut out, &[0x4a69_5444, 1, 40, 62, 0, 77]);
    longs(&mut out, &[1, 0]);
    // Two fields of 4 bytes are one number: the line and discriminator (7, 0), and the pid and tid (77, 0).
    record(&mut out, DEBUG_INFO, &[0x1000, 1, 0x1000, 7], b"a.js\0");
    record(&mut out, UNWINDING_INFO, &[8, 2, 0], b"framesix");
    record(&mut out, LOAD, &[77, 0x1000, 0x1000, 4, 0], b"first\0code");
    record(&mut out, LOAD, &[77, 0x2000, 0x2000, 4, 1], b"second\0code");
    record(&mut out, MOVE, &[77, 0x1000, 0x1000, 0x3000, 4, 0], b"");
    out.extend(b"\n1000 20 map\nffffffff81000000 T _text\nffffffff81000100 t work\t[module]\n");
    out
}

/// Appends a record: a header of 16 bytes (type, size, time 5), these numbers, and the bytes `after` them.
fn record(out: &mut Vec<u8>, kind: u32, numbers: &[u64], after: &[u8]) {
    words(out, &[kind, (16 + numbers.len() * 8 + after.len()) as u32]);
    longs(out, &[5]);
    longs(out, numbers);
    out.extend(after);
}

fn words(out: &mut Vec<u8>, words: &[u32]) {
    out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
}

fn longs(out: &mut Vec<u8>, longs: &[u64]) {
    out.extend(longs.iter().flat_map(|long| long.to_le_bytes()));
}

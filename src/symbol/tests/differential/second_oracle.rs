//! Lines and inlined functions of ordinary programs, compared with the crate addr2line at random addresses in random order.
//! The crate addr2line and rperf share only the DWARF parser gimli. The first oracle is the program addr2line of binutils, in the
//! module `lines`.

use std::cell::Cell;
use std::path::{Path, PathBuf};

use gimli::{EndianSlice, LittleEndian, SectionId};
use object::read::{Object as _, ObjectSection as _};
use proptest::prelude::*;
use rperf_symbol::{Budget, LineIndex, LoadedSymbols};

use crate::elf::run;
use crate::lines::{CPP, Frame, RUST, loaded, open, ours};
use crate::scratch;

/// Addresses looked up in each test case, one after the other.
const ADDRESSES_PER_CASE: usize = 300;

type Context<'a> = addr2line::Context<EndianSlice<'a, LittleEndian>>;

fn context<'a>(elf: &object::File<'a>) -> Context<'a> {
    let section = |id: SectionId| -> Result<_, gimli::Error> {
        let section = elf.section_by_name(id.name());
        let bytes = section.map(|section| section.data().expect("a plain section"));
        Ok(EndianSlice::new(bytes.unwrap_or_default(), LittleEndian))
    };
    let dwarf = gimli::Dwarf::load(section).expect("sections");
    addr2line::Context::from_dwarf(dwarf).expect("a context")
}

fn theirs(context: &Context<'_>, address: u64) -> Vec<Frame> {
    let frames = context.find_frames(address).skip_all_loads();
    let mut frames = frames.expect("frames");
    let mut list = Vec::new();
    while let Some(frame) = frames.next().expect("a frame") {
        let name = frame
            .function
            .as_ref()
            .map(|name| name.raw_name().expect("a name"));
        let location = frame.location.unwrap_or(addr2line::Location {
            file: None,
            line: None,
            column: None,
        });
        let file = location.file.unwrap_or("??");
        list.push((
            name.map_or("??".to_owned(), |name| name.into_owned()),
            file.rsplit('/').next().unwrap_or(file).to_owned(),
            location.line.unwrap_or(0),
        ));
    }
    list
}

/// Compares rperf with addr2line at random addresses in `.text`.
fn compare(object: &Path) {
    let loaded: LoadedSymbols = loaded(object);
    let bytes = std::fs::read(object).expect("the object");
    let elf = object::File::parse(&*bytes).expect("an ELF file");
    let context = context(&elf);
    let text = elf.section_by_name(".text").expect("code");
    let (offset, size) = text.file_range().expect("bytes in the file");
    let budget = Budget::new(Budget::DEFAULT_BYTES);
    let lines: LineIndex = open(&loaded, &budget).expect("debug information");
    let offsets = prop::collection::vec(0..size, ADDRESSES_PER_CASE);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(20));
    let inlined = Cell::new(0);
    let outcome = runner.run(&offsets, |offsets| {
        for at in offsets {
            // rperf looks up file offsets, as in its symbol tables; addr2line looks up addresses.
            let mut ours = ours(&lines, offset + at);
            let theirs = theirs(&context, text.address() + at);
            // For code without function and line, addr2line returns nothing, and rperf an unnamed function without line.
            if theirs.is_empty()
                && ours
                    .iter()
                    .all(|(name, _, line)| name == "??" && *line == 0)
            {
                ours.clear();
            }
            inlined.set(inlined.get() + usize::from(theirs.len() > 1));
            prop_assert_eq!(
                ours,
                theirs,
                "{:#x} of {}",
                text.address() + at,
                object.display()
            );
        }
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
    // More than 10 of the 6000 addresses must be in inlined functions, otherwise the test compares almost none. Without
    // optimization (`-O0`, at the end of the file's name), compilers inline nothing.
    assert!(
        inlined.get() > 10 || object.to_string_lossy().ends_with("-O0"),
        "inlined functions were hit {} times",
        inlined.get()
    );
}

#[test]
fn cpp_programs_match_the_crate_addr2line() {
    let dir = scratch("second-oracle-cpp");
    let source = dir.join("inlines.cpp");
    std::fs::write(&source, CPP).expect("the source is written");
    for version in ["-gdwarf-3", "-gdwarf-4", "-gdwarf-5"] {
        for level in ["-O0", "-O2"] {
            let object = dir.join(format!("program{version}{level}"));
            let arguments = [
                &*source.to_string_lossy(),
                "-o",
                &object.to_string_lossy(),
                version,
                level,
            ]
            .map(str::to_owned);
            if run("g++", &arguments.each_ref().map(String::as_str)) {
                compare(&object);
            }
        }
    }
}

#[test]
fn rust_programs_match_the_crate_addr2line() {
    let dir = scratch("second-oracle-rust");
    let (source, object) = (dir.join("inlines.rs"), dir.join("program"));
    std::fs::write(&source, RUST).expect("the source is written");
    let arguments = [
        "--edition=2024",
        "-O",
        "-g",
        "-o",
        &object.to_string_lossy(),
        &source.to_string_lossy(),
    ]
    .map(str::to_owned);
    if run("rustc", &arguments.each_ref().map(String::as_str)) {
        compare(&object);
    }
}

#[test]
fn this_program_matches_the_crate_addr2line() {
    let own: PathBuf = std::env::current_exe().expect("the program's path");
    compare(&own);
}

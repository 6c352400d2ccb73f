//! Benchmark of looking up lines and inlined functions, compared with the crate addr2line. Results are in
//! `docs/design/0005-own-line-index.md`.
//!
//! `cargo bench -p rperf-symbol --bench lines -- OBJECT [COUNT]` looks up COUNT addresses (default: 100,000) of
//! OBJECT's code with rperf and with addr2line, in separate single-threaded processes, and prints time and memory.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use gimli::{EndianSlice, LittleEndian};
use object::read::{Object as _, ObjectSection as _};
use rperf_symbol::{
    Budget, Files as _, LineIndex, MemoryFiles, ObjectKind, ObjectRequest, SearchPaths, SymbolKind,
    load,
};

/// The object is the only source of symbols and lines: there is no build-id cache.
const NO_CACHE: Option<PathBuf> = None;

/// The object in memory, from which each tool reads.
fn files(object: &Path) -> MemoryFiles {
    let mut files = MemoryFiles::new();
    files.insert(object, fs::read(object).expect("the object"));
    files
}

/// Measurements of one process. Times are seconds of CPU time since the symbols were loaded.
struct Figures {
    /// Until the debug information was opened.
    open: f64,
    /// Until the first address was looked up, including `open`.
    first: f64,
    /// Until all addresses were looked up, including `open`.
    all: f64,
    /// Number of frames found.
    frames: usize,
    /// Anonymous memory in KiB before debug information was read.
    before: u64,
    /// Anonymous memory in KiB after all look-ups.
    after: u64,
}

fn main() {
    let words: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| word != "--bench")
        .collect();
    let Some(object) = words.first() else {
        println!("usage: cargo bench -p rperf-symbol --bench lines -- OBJECT [COUNT]");
        return;
    };
    let count = words
        .get(1)
        .map_or(100_000, |count| count.parse().expect("a number"));
    // Only the processes that this program starts get the name of a tool.
    match words.get(2).map(String::as_str) {
        Some("rperf") => print(&measure_rperf(Path::new(object), count)),
        Some(_) => print(&measure_addr2line(Path::new(object), count)),
        None => {
            for tool in ["rperf", "addr2line"] {
                println!("{tool}:");
                let own = std::env::current_exe().expect("the program's path");
                let mut command = Command::new(own);
                // Freed memory is returned to the kernel, so that memory before and after can be compared.
                command
                    .env("MALLOC_MMAP_THRESHOLD_", "65536")
                    .env("MALLOC_TRIM_THRESHOLD_", "65536");
                command
                    .args([object, &count.to_string(), tool])
                    .stdout(Stdio::inherit());
                assert!(command.status().expect("it runs").success());
            }
        }
    }
}

/// Random addresses in the functions of an object: as file offsets, which rperf's symbol table has, and as virtual
/// addresses.
fn addresses(files: &MemoryFiles, object: &Path, count: usize) -> Vec<(u64, u64)> {
    let mut paths = SearchPaths::new(NO_CACHE);
    paths.demangle = false;
    let loaded = load(files, &paths, &ObjectRequest::new(object, ObjectKind::User));
    let bytes = files.read(object).expect("the object");
    let elf = object::File::parse(&*bytes).expect("an ELF file");
    let text = elf.section_by_name(".text").expect("code");
    let (text_offset, _) = text.file_range().expect("bytes in the file");
    let functions = loaded
        .table
        .iter()
        .filter(|(_, symbol)| symbol.kind == SymbolKind::Function);
    // Start and end of each function, as file offsets.
    let ranges: Vec<_> = functions
        .map(|(_, symbol)| (symbol.start, symbol.end))
        .collect();
    let mut state = 1_u64;
    let mut random = || {
        // Knuth's linear congruential generator: the same addresses in each run.
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let mut random_address = || {
        let (start, end) = ranges[usize::try_from(random()).expect("a position") % ranges.len()];
        let file_offset = start + random() % (end - start).max(1);
        let virtual_address = file_offset
            .wrapping_sub(text_offset)
            .wrapping_add(text.address());
        (file_offset, virtual_address)
    };
    (0..count).map(|_| random_address()).collect()
}

fn measure_rperf(object: &Path, count: usize) -> Figures {
    let files = files(object);
    let addresses = addresses(&files, object, count);
    let mut paths = SearchPaths::new(NO_CACHE);
    paths.demangle = false;
    let loaded = load(
        &files,
        &paths,
        &ObjectRequest::new(object, ObjectKind::User),
    );
    let before = anonymous();
    let begin = processor_time();
    let budget = Budget::new(Budget::DEFAULT_BYTES);
    let lines = LineIndex::open(
        &files,
        &paths,
        loaded.debug.as_ref().expect("debug information"),
        &budget,
    )
    .expect("lines");
    let open = processor_time() - begin;
    let mut figures = Figures {
        open,
        first: 0.0,
        all: 0.0,
        frames: 0,
        before,
        after: 0,
    };
    let mut frames = Vec::new();
    for (at, (file_offset, _)) in addresses.iter().enumerate() {
        frames.clear();
        lines.frames(&files, *file_offset, &mut frames);
        figures.frames += frames.len();
        for frame in &frames {
            black_box(
                frame
                    .function
                    .map(|function| lines.raw_function_name(function).len()),
            );
            black_box(frame.file.map(|file| lines.file(file).len()));
        }
        if at == 0 {
            figures.first = processor_time() - begin;
        }
    }
    figures.all = processor_time() - begin;
    figures.after = anonymous();
    figures
}

fn measure_addr2line(object: &Path, count: usize) -> Figures {
    let files = files(object);
    let addresses = addresses(&files, object, count);
    // The symbols are loaded here, too, so that both start with the same memory.
    let mut paths = SearchPaths::new(NO_CACHE);
    paths.demangle = false;
    let loaded = load(
        &files,
        &paths,
        &ObjectRequest::new(object, ObjectKind::User),
    );
    let bytes = files.read(object).expect("the object");
    let before = anonymous();
    let begin = processor_time();
    let elf = object::File::parse(&*bytes).expect("an ELF file");
    let section = |id: gimli::SectionId| -> Result<EndianSlice<'_, LittleEndian>, gimli::Error> {
        let section = elf.section_by_name(id.name());
        let data = section.map(|section| section.data().expect("a plain section"));
        Ok(EndianSlice::new(data.unwrap_or_default(), LittleEndian))
    };
    let dwarf = gimli::Dwarf::load(section).expect("sections");
    let context = addr2line::Context::from_dwarf(dwarf).expect("a context");
    let open = processor_time() - begin;
    let mut figures = Figures {
        open,
        first: 0.0,
        all: 0.0,
        frames: 0,
        before,
        after: 0,
    };
    for (at, (_, address)) in addresses.iter().enumerate() {
        let mut frames = context
            .find_frames(*address)
            .skip_all_loads()
            .expect("frames");
        while let Some(frame) = frames.next().expect("a frame") {
            figures.frames += 1;
            black_box(
                frame
                    .function
                    .map(|function| function.raw_name().map(|name| name.len()).ok()),
            );
            black_box(frame.location.and_then(|place| place.file).map(str::len));
        }
        if at == 0 {
            figures.first = processor_time() - begin;
        }
    }
    figures.all = processor_time() - begin;
    figures.after = anonymous();
    // Kept until here, so that the symbols are part of both measurements of memory.
    drop(loaded);
    figures
}

fn print(figures: &Figures) {
    let Figures {
        open, first, all, ..
    } = figures;
    println!(
        "  open {open:.3} s, first answer {first:.3} s, all {all:.3} s of CPU, {} frames",
        figures.frames
    );
    println!(
        "  {} MB, {} MB before",
        figures.after >> 10,
        figures.before >> 10
    );
}

/// CPU time of the main thread in seconds.
fn processor_time() -> f64 {
    let status = fs::read_to_string("/proc/self/schedstat").expect("scheduler statistics");
    let nanoseconds = status
        .split(' ')
        .next()
        .and_then(|word| word.parse::<f64>().ok());
    nanoseconds.expect("a time") / 1e9
}

/// Anonymous memory of this process, in KiB.
fn anonymous() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("a status");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    let number = line.and_then(|line| line.trim().strip_suffix(" kB"));
    number.expect("a size").parse().expect("a number")
}

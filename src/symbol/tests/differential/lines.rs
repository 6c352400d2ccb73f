//! Lines and inlined functions compared with binutils' addr2line, for programs compiled by the tests.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use object::read::{Object as _, ObjectSegment as _};
use rperf_symbol::{
    Budget, FileBytes, LineIndex, LoadedSymbols, MemoryFiles, ObjectKind, ObjectRequest,
    SearchPaths, SymbolKind, load,
};

use crate::elf::run;
use crate::{Disk, scratch};

pub(crate) const CPP: &str = include_str!("../workloads/inlines.cpp");
pub(crate) const RUST: &str = include_str!("../workloads/inlines.rs");
const GO: &str = include_str!("../workloads/inlines.go");

/// Function, file name without folders, line.
pub(crate) type Frame = (String, String, u32);

pub(crate) fn loaded(object: &Path) -> LoadedSymbols {
    let mut paths = SearchPaths::new(None);
    paths.demangle = false;
    load(&Disk, &paths, &ObjectRequest::new(object, ObjectKind::User))
}

pub(crate) fn open(loaded: &LoadedSymbols, budget: &Arc<Budget>) -> Option<LineIndex> {
    let mut paths = SearchPaths::new(None);
    paths.demangle = false;
    LineIndex::open(&Disk, &paths, loaded.debug.as_ref()?, budget)
}

pub(crate) fn ours(lines: &LineIndex, address: u64) -> Vec<Frame> {
    let mut frames = Vec::new();
    lines.frames(&Disk, address, &mut frames);
    let text = |file: Option<&str>| {
        let file = file.unwrap_or("??");
        file.rsplit('/').next().unwrap_or(file).to_owned()
    };
    let frames = frames.into_iter().map(|frame| {
        let name = frame
            .function
            .map_or("??", |name| lines.raw_function_name(name));
        let file = text(frame.file.map(|file| lines.file(file)));
        (name.to_owned(), file, frame.line)
    });
    frames.collect()
}

/// Addresses in all functions of the object: each as a file offset, like the addresses in [`LoadedSymbols::table`], and as a
/// virtual address, for addr2line.
fn addresses(object: &Path, loaded: &LoadedSymbols) -> Vec<(u64, u64)> {
    let bytes = std::fs::read(object).expect("the object");
    let elf = object::File::parse(&*bytes).expect("an ELF file");
    let virtual_address = |offset: u64| {
        let mut segments = elf
            .segments()
            .map(|segment| (segment.file_range(), segment.address()));
        let found = segments.find(|((start, len), _)| (*start..start + len).contains(&offset));
        found.map(|((start, _), address)| offset - start + address)
    };
    let functions = loaded
        .table
        .iter()
        .filter(|(_, symbol)| symbol.kind == SymbolKind::Function);
    let inside = functions.flat_map(|(_, symbol)| (symbol.start..symbol.end).step_by(5));
    inside
        .filter_map(|offset| Some((offset, virtual_address(offset)?)))
        .collect()
}

/// The frames that addr2line prints for each address; `None` if it can't be run or its output can't be parsed. All addresses are
/// looked up twice, and the first answers ignored: on the first lookup of a function without a linkage name, binutils 2.40 gives
/// it the name of the surrounding symbol.
fn theirs(object: &Path, flags: &[&str], addresses: &[(u64, u64)]) -> Option<Vec<Vec<Frame>>> {
    let mut command = Command::new("addr2line");
    command.args(flags).args(["-a", "-i", "-f", "-e"]);
    command.arg(object);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    let mut input = child.stdin.take()?;
    let questions: String = addresses
        .iter()
        .map(|(_, address)| format!("{address:x}\n"))
        .collect();
    let writer = std::thread::spawn(move || {
        drop(input.write_all(questions.repeat(2).as_bytes()));
    });
    let output = child.wait_with_output().ok()?;
    writer.join().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut answers: Vec<Vec<Frame>> = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("0x") {
            answers.push(Vec::new());
            continue;
        }
        let place = lines.next()?.split(" (discriminator").next()?;
        let (file, number) = place.rsplit_once(':')?;
        let file = file.rsplit('/').next()?.to_owned();
        answers
            .last_mut()?
            .push((line.to_owned(), file, number.parse().unwrap_or(0)));
    }
    Some(answers.split_off(addresses.len()))
}

/// Whether only the outermost name differs (the outermost file is not compared): addr2line uses the symbol's name if the debug
/// information has no name, or one without the suffix `.abi0` that Go's assembler adds to the symbol's. The callers of
/// [`LineIndex`] use the symbol's name, too. Also true if the address has no debug information: `ours` has no frame then, and
/// `theirs` one frame with a name but no line.
fn differs_in_outer_name(ours: &[Frame], theirs: &[Frame]) -> bool {
    let Some(((symbol, _, their_line), their_inner)) = theirs.split_last() else {
        return false;
    };
    match ours.split_last() {
        Some(((name, _, line), inner)) => {
            let is_symbol = name == "??" || symbol.strip_suffix(".abi0") == Some(name);
            is_symbol && line == their_line && inner == their_inner
        }
        None => *their_line == 0 && their_inner.is_empty(),
    }
}

/// Whether only the file of the first frame differs: for rows of a line table before the first row that sets a file, binutils
/// 2.40 counts files from 1 even in DWARF 5. The file that it then names wrongly is the program's source or, with `-flto`,
/// `<artificial>`.
fn differs_in_first_file(ours: &[Frame], theirs: &[Frame]) -> bool {
    let ([first, callers @ ..], [their_first, their_callers @ ..]) = (ours, theirs) else {
        return false;
    };
    callers == their_callers
        && (&first.0, first.2) == (&their_first.0, their_first.2)
        && (their_first.1.starts_with("inlines.") || their_first.1 == "<artificial>")
}

/// Compares the frames in all functions of an object; addr2line reads debug information from `dwarf`, a file with the same code.
fn compare(object: &Path, dwarf: &Path) {
    let loaded = loaded(object);
    let addresses = addresses(object, &loaded);
    compare_at(&loaded, &addresses, dwarf, &[]);
}

/// Compares the frames at `addresses`, each given as in [`LoadedSymbols::table`] and as addr2line expects it. Besides the known
/// differences, accepts one other per thousand frames.
fn compare_at(loaded: &LoadedSymbols, addresses: &[(u64, u64)], dwarf: &Path, flags: &[&str]) {
    let budget = Budget::new(Budget::DEFAULT_BYTES);
    let lines = open(loaded, &budget).expect("debug information");
    let Some(theirs) = theirs(dwarf, flags, addresses) else {
        eprintln!("skipped: no addr2line");
        return;
    };
    let (mut frames, mut inlined) = (0, 0);
    let mut different = Vec::new();
    for ((address, virtual_address), theirs) in addresses.iter().zip(&theirs) {
        let ours = ours(&lines, *address);
        frames += theirs.len();
        inlined += theirs.len() - 1;
        if ours != *theirs
            && !differs_in_outer_name(&ours, theirs)
            && !differs_in_first_file(&ours, theirs)
        {
            different.push(format!(
                "{virtual_address:#x}: ours {ours:?}, theirs {theirs:?}"
            ));
        }
    }
    let path = dwarf.display();
    assert_eq!(lines.findings(), [], "{path}");
    assert!(
        inlined > 100 && frames > 1000,
        "{path}: {inlined} of {frames} frames are inlined"
    );
    assert!(
        different.len() * 1000 <= frames,
        "{path}: {} of {frames} differ:\n{}",
        different.len(),
        different
            .iter()
            .take(10)
            .cloned()
            .collect::<Vec<_>>()
            .join("\n")
    );
}

/// Compiles the C++ program to the file `name` in `dir`; `None` if that fails.
fn build(dir: &Path, name: &str, flags: &[&str]) -> Option<PathBuf> {
    let (source, object) = (dir.join("inlines.cpp"), dir.join(name));
    std::fs::write(&source, CPP).expect("the source is written");
    let mut arguments = vec![
        "-O2",
        "-Wl,--build-id",
        "-o",
        object.to_str()?,
        source.to_str()?,
    ];
    arguments.extend(flags);
    run("g++", &arguments).then_some(object)
}

#[test]
fn all_versions_of_dwarf_match_addr2line() {
    let dir = scratch("lines-versions");
    for flag in [
        "-gdwarf-2",
        "-gdwarf-3",
        "-gdwarf-4",
        "-gdwarf-5",
        "-gdwarf-5 -flto",
        "-gdwarf-5 -m32",
    ] {
        let flags: Vec<_> = flag.split(' ').collect();
        let name = flag.replace([' ', '-'], "");
        if let Some(object) = build(&dir, &name, &flags) {
            compare(&object, &object);
        }
    }
}

#[test]
fn compressed_sections_match_addr2line() {
    let dir = scratch("lines-compressed");
    let Some(object) = build(&dir, "plain", &["-g"]) else {
        return;
    };
    for format in ["zlib", "zlib-gnu", "zstd"] {
        let packed = dir.join(format);
        let flag = format!("--compress-debug-sections={format}");
        let (from, to) = (
            object.to_str().expect("a path"),
            packed.to_str().expect("a path"),
        );
        if run("objcopy", &[&flag, from, to]) {
            compare(&packed, &object);
        }
    }
}

#[test]
fn separate_debug_files_match_addr2line() {
    let dir = scratch("lines-separate");
    let Some(object) = build(&dir, "program", &["-g"]) else {
        return;
    };
    let name = object.to_str().expect("a path");
    let copy = dir.join("whole");
    std::fs::copy(&object, &copy).expect("a copy");
    let debug = format!("{name}.debug");
    let link = format!("--add-gnu-debuglink={debug}");
    if run("objcopy", &["--only-keep-debug", name, &debug])
        && run("strip", &[name])
        && run("objcopy", &[&link, name])
    {
        compare(&object, &copy);
    }
}

#[test]
fn split_dwarf_matches_addr2line() {
    for version in ["-gdwarf-4", "-gdwarf-5"] {
        let dir = scratch(&format!("lines-split{version}"));
        let Some(object) = build(&dir, "program", &["-gsplit-dwarf", version]) else {
            return;
        };
        let name = object.to_str().expect("a path");
        // addr2line of binutils does not find .dwo files in a package, so it reads the same code without split DWARF.
        let Some(plain) = build(&dir, "plain", &["-g", version]) else {
            return;
        };
        compare(&object, &plain);
        if run("dwp", &["-e", name, "-o", &format!("{name}.dwp")]) {
            remove_dwo(&dir);
            compare(&object, &plain);
            std::fs::remove_file(dir.join("program.dwp")).expect("the package is removed");
        }
        remove_dwo(&dir);
        // Now there are neither .dwo files nor a package: only the line table in the program is left.
        let loaded = loaded(&object);
        let lines = open(&loaded, &Budget::new(Budget::DEFAULT_BYTES)).expect("debug information");
        let has_lines = addresses(&object, &loaded).iter().any(|&(address, _)| {
            let frames = ours(&lines, address);
            assert!(frames.len() < 2, "inlined functions are unknown");
            frames
                .iter()
                .any(|(_, file, line)| file == "inlines.cpp" && *line > 0)
        });
        assert!(has_lines, "lines are known");
        assert!(lines.findings()[0].to_string().contains(".dwo: not found"));
    }
}

fn remove_dwo(dir: &Path) {
    for entry in std::fs::read_dir(dir).expect("the folder").flatten() {
        if entry
            .path()
            .extension()
            .is_some_and(|extension| extension == "dwo")
        {
            std::fs::remove_file(entry.path()).expect("the .dwo file is removed");
        }
    }
}

#[test]
fn rust_programs_match_addr2line() {
    let dir = scratch("lines-rust");
    let (source, object) = (dir.join("inlines.rs"), dir.join("program"));
    std::fs::write(&source, RUST).expect("the source is written");
    let (from, to) = (
        source.to_str().expect("a path"),
        object.to_str().expect("a path"),
    );
    if run("rustc", &["--edition=2024", "-O", "-g", "-o", to, from]) {
        compare(&object, &object);
    }
}

#[test]
fn go_programs_match_addr2line() {
    let dir = scratch("lines-go");
    let (source, object) = (dir.join("inlines.go"), dir.join("program"));
    std::fs::write(&source, GO).expect("the source is written");
    let mut compiler = Command::new("go");
    compiler.arg("build").arg("-o").args([&object, &source]);
    let built = compiler.env("GOCACHE", dir.join("cache")).status();
    if built.is_ok_and(|status| status.success()) {
        compare(&object, &object);
    } else {
        eprintln!("skipped: no compiler for Go");
    }
}

/// `dwz -m` moves DWARF shared by several programs to a separate file, named by `.gnu_debugaltlink`.
#[test]
fn shared_debug_information_matches_addr2line() {
    let dir = scratch("lines-shared");
    for version in ["-gdwarf-4", "-gdwarf-5"] {
        let programs = ["one", "two"].map(|name| build(&dir, name, &["-g", version]));
        let [Some(one), Some(two)] = programs else {
            return;
        };
        let copy = dir.join("whole");
        std::fs::copy(&one, &copy).expect("a copy");
        let common = dir.join("common");
        let paths = [&common, &one, &two].map(|path| path.to_str().expect("a path"));
        if !run("dwz", &["-m", paths[0], paths[1], paths[2]]) {
            return;
        }
        assert!(common.exists(), "{version}: something is shared");
        compare(&one, &copy);
        std::fs::remove_file(&common).expect("the common part is removed");
        let loaded = loaded(&one);
        let lines = open(&loaded, &Budget::new(Budget::DEFAULT_BYTES)).expect("lines");
        // Only checks that lookups without the common part do not panic.
        for (address, _) in addresses(&one, &loaded) {
            ours(&lines, address);
        }
    }
}

#[test]
fn unlinked_modules_match_addr2line() {
    const LOADED_AT: u64 = 0xffff_ffff_c012_3000;
    let dir = scratch("lines-module");
    for flags in [
        &["-g", "-gdwarf-5"][..],
        &["-g", "-gdwarf-4", "-Wa,--compress-debug-sections=zlib"],
    ] {
        let flags = [flags, &["-c"]].concat();
        let Some(object) = build(&dir, "module.ko", &flags) else {
            return;
        };
        let mut paths = SearchPaths::new(None);
        paths.demangle = false;
        // Some distributions install compressed modules.
        let packed = ["gzip", "xz", "zstd"].map(|packer| packed(packer, &object));
        for file in packed.iter().flatten().chain([&object]) {
            let loaded = load(
                &Disk,
                &paths,
                &ObjectRequest {
                    map_start: LOADED_AT,
                    ..ObjectRequest::new(file, ObjectKind::KernelModule)
                },
            );
            let functions = loaded
                .table
                .iter()
                .filter(|(_, symbol)| symbol.kind == SymbolKind::Function);
            let inside = functions.flat_map(|(_, symbol)| (symbol.start..symbol.end).step_by(3));
            let addresses: Vec<_> = inside
                .map(|address| (address, address - LOADED_AT))
                .collect();
            assert!(!addresses.is_empty(), "{}", file.display());
            compare_at(&loaded, &addresses, &object, &["-j", ".text"]);
        }
    }
}

/// Compresses `object` with `packer`; `None` if this program can't be run.
fn packed(packer: &str, object: &Path) -> Option<PathBuf> {
    let packed = Command::new(packer).arg("-c").arg(object).output();
    let Ok(packed) = packed.inspect_err(|error| eprintln!("skipped: {packer}: {error}")) else {
        return None;
    };
    assert!(packed.status.success(), "{packer}: {packed:?}");
    let file = PathBuf::from(format!("{}.{packer}", object.display()));
    std::fs::write(&file, packed.stdout).expect("a compressed module");
    Some(file)
}

#[test]
fn memory_is_bounded_and_shared_between_threads() {
    let dir = scratch("lines-memory");
    let Some(object) = build(&dir, "program", &["-g"]) else {
        return;
    };
    let loaded = loaded(&object);
    let addresses = addresses(&object, &loaded);
    let roomy = Budget::new(Budget::DEFAULT_BYTES);
    let lines = open(&loaded, &roomy).expect("debug information");
    let expected: Vec<_> = addresses
        .iter()
        .map(|&(address, _)| ours(&lines, address))
        .collect();
    assert!(roomy.used() > 0);
    let tight = Budget::new(roomy.used() / 2);
    let small = open(&loaded, &tight).expect("debug information");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for (&(address, _), expected) in addresses.iter().zip(&expected) {
                    assert_eq!(ours(&small, address), *expected);
                }
            });
        }
    });
    assert!(
        tight.used() <= roomy.used() / 2,
        "{} of {}",
        tight.used(),
        roomy.used()
    );
    drop((small, lines));
    assert_eq!((tight.used(), roomy.used()), (0, 0));
}

/// A xorshift generator.
struct Xorshift(u64);

impl Xorshift {
    /// The next pseudorandom number, below `limit`.
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

#[test]
fn damaged_debug_information_does_not_panic() {
    use object::read::ObjectSection as _;

    let dir = scratch("lines-damage");
    let source = dir.join("small.c");
    let code = "static inline int a(int x) { return x * x; } int b(int x) { return a(x) + a(x + 1); }\n\
                int main(int n, char **v) { return b(n) + a(n); }\n";
    std::fs::write(&source, code).expect("the source is written");
    let mut random = Xorshift(0x5eed_cafe_f00d);
    for version in ["-gdwarf-4", "-gdwarf-5"] {
        let object = dir.join(version);
        let (from, to) = (
            source.to_str().expect("a path"),
            object.to_str().expect("a path"),
        );
        if !run("gcc", &["-O2", version, "-o", to, from]) {
            return;
        }
        let bytes = std::fs::read(&object).expect("the object");
        let elf = object::File::parse(&*bytes).expect("an ELF file");
        let debug = elf
            .sections()
            .filter(|s| s.name().is_ok_and(|name| name.starts_with(".debug")));
        let places: Vec<_> = debug.filter_map(|section| section.file_range()).collect();
        for _ in 0..500 {
            let mut damaged = bytes.clone();
            for _ in 0..=random.below(6) {
                let (start, len) = places[random.below(places.len())];
                let at = start as usize + random.below(len as usize);
                damaged[at] = [0, 1, 0x7f, 0x80, 0xff, random.below(256) as u8][random.below(6)];
            }
            look_up_addresses(damaged);
        }
        for len in (0..bytes.len()).step_by(397) {
            look_up_addresses(bytes[..len].to_vec());
        }
    }
}

/// Looks up addresses of a small program at intervals of 7 bytes; the results are ignored.
fn look_up_addresses(bytes: Vec<u8>) {
    let path = Path::new("/damaged");
    let mut files = MemoryFiles::new();
    files.insert(path, FileBytes::from(bytes));
    let paths = SearchPaths::new(None);
    let loaded = load(&files, &paths, &ObjectRequest::new(path, ObjectKind::User));
    let budget = Budget::new(Budget::DEFAULT_BYTES);
    let lines = loaded
        .debug
        .and_then(|debug| LineIndex::open(&files, &paths, &debug, &budget));
    let Some(lines) = lines else { return };
    let mut frames = Vec::new();
    for address in (0x1000..0x1300).step_by(7) {
        lines.frames(&files, address, &mut frames);
    }
    for frame in frames {
        frame.function.map(|name| lines.function_name(name).len());
        frame.file.map(|file| lines.file(file).len());
    }
    drop(lines.findings());
}

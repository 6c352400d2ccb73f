//! The DIE scanner and the unit prefilter, compared with gimli.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use gimli::{AttributeValue, DwTag, Reader as _, Unit, UnitOffset};
use rperf_symbol::dwarf::{
    DieReference, DieScanner, FunctionEntries, MAX_ORIGINS, Slice, WantedNames,
};
use rperf_symbol::{
    DebugInfo, DebugUnit, FunctionQuery, ObjectKind, ObjectRequest, SearchPaths, UnitPrefilter,
    load,
};

use crate::{Disk, scratch};

const C: &str = r"
struct pair { int a, b; int (*call)(int, int); };
union both { struct pair pair; long whole[4]; };
enum colour { RED, GREEN };
static inline int twice(int v) { return v * 2; }
__attribute__((noinline)) int outer(struct pair *p, int n)
{
    extern int elsewhere(int);
    int inner(int x) { return x * n + p->a; }
    int sum = 0;
    for (int i = 0; i < n; i++) { int part = inner(i); sum += twice(part); }
    return elsewhere(sum);
}
";
const OTHER: &str = r"
static inline int twice(int v) { return v * 2 + 1; }
int elsewhere(int n) { return twice(n) + twice(n + 1); }
struct pair { int a, b; int (*call)(int, int); };
int outer(struct pair *p, int n);
int main(int argc, char **argv) { struct pair p = { argc, 2, 0 }; (void)argv; return outer(&p, argc); }
";
const CPP: &str = r"
#include <string>
#include <vector>
namespace geo {
struct Shape {
    enum class Kind { A, B };
    virtual ~Shape() = default;
    virtual int area() const { return 0; }
    template <class T> T scaled(T by) const { struct Local { static T of(T v) { return v + v; } }; return Local::of(by); }
};
struct Square : Shape { int side = 3; int area() const override; static int count(int n); };
int Square::area() const { return side * side; }
int Square::count(int n) { auto twice = [](int v) { return v * 2; }; return twice(n); }
}
int main(int argc, char **argv)
{
    std::vector<std::string> all(argv, argv + argc);
    geo::Square square;
    const geo::Shape &shape = square;
    return shape.area() + geo::Square::count(argc) + square.scaled(argc) + int(all.size()) + int(square.scaled(2.5));
}
";

/// A program to be compiled.
struct Program {
    compiler: &'static str,
    flags: &'static [&'static str],
    sources: &'static [&'static str],
}

impl Program {
    const fn c(flags: &'static [&'static str]) -> Self {
        Self {
            compiler: "cc",
            flags,
            sources: &["c.c", "other.c"],
        }
    }

    const fn cpp(flags: &'static [&'static str]) -> Self {
        Self {
            compiler: "c++",
            flags,
            sources: &["cpp.cpp"],
        }
    }
}

const PROGRAMS: &[Program] = &[
    Program::c(&["-O0", "-g"]),
    Program::c(&["-O2", "-g"]),
    Program::c(&["-O2", "-gdwarf-2", "-gstrict-dwarf"]),
    Program::c(&["-O2", "-gdwarf-3"]),
    Program::c(&["-O2", "-gdwarf-4"]),
    Program::c(&["-O2", "-gdwarf-5", "-gdwarf64"]),
    Program::c(&["-O2", "-g", "-gz"]),
    Program::c(&["-O2", "-g", "-flto"]),
    Program::c(&["-O2", "-gdwarf-4", "-gsplit-dwarf"]),
    Program::c(&["-O2", "-gdwarf-5", "-gsplit-dwarf"]),
    Program::cpp(&["-O0", "-g"]),
    Program::cpp(&["-O2", "-g"]),
    Program::cpp(&["-O2", "-gdwarf-4", "-fdebug-types-section"]),
    Program::cpp(&["-O2", "-g", "-flto"]),
    Program::cpp(&["-O1", "-g", "-gsplit-dwarf"]),
];

/// An entry as read by the scanner or by gimli.
#[derive(Debug, PartialEq)]
struct Entry {
    offset: usize,
    tag: DwTag,
    depth: isize,
    /// Its name and linkage names.
    names: Vec<String>,
    /// The offset of the origin (the entry's abstract origin, otherwise its specification); `Some(None)` if the origin is in
    /// another unit, `None` if there is none.
    origin: Option<Option<usize>>,
    is_declaration: bool,
    has_abstract_origin: bool,
    has_addresses: bool,
    /// File and line of the declaration, then of the call site.
    numbers: [Option<u64>; 4],
}

fn is_function_or_inlined(tag: DwTag) -> bool {
    matches!(
        tag,
        gimli::DW_TAG_subprogram | gimli::DW_TAG_inlined_subroutine
    )
}

fn read_with_gimli(unit: &DebugUnit<'_>) -> Vec<Entry> {
    let gimli_unit: &Unit<Slice<'_>> = &unit.unit;
    let mut entries = gimli_unit.entries();
    let mut found = Vec::new();
    let text = |value| {
        let text = unit.dwarf.attr_string(gimli_unit, value).ok()?;
        Some(text.to_string_lossy().into_owned())
    };
    while let Ok(Some(entry)) = entries.next_dfs() {
        if !is_function_or_inlined(entry.tag()) {
            continue;
        }
        let value = |attribute| entry.attr_value(attribute);
        let number = |attribute| match value(attribute) {
            Some(AttributeValue::FileIndex(index)) => Some(index),
            value => value?.udata_value(),
        };
        let name_attributes = [
            gimli::DW_AT_name,
            gimli::DW_AT_linkage_name,
            gimli::DW_AT_MIPS_linkage_name,
        ];
        let origin = value(gimli::DW_AT_abstract_origin).or(value(gimli::DW_AT_specification));
        found.push(Entry {
            offset: entry.offset().0,
            tag: entry.tag(),
            depth: entry.depth(),
            names: name_attributes
                .into_iter()
                .filter_map(|attribute| text(value(attribute)?))
                .collect(),
            origin: origin.map(|origin| match origin {
                AttributeValue::UnitRef(offset) => Some(offset.0),
                _ => None,
            }),
            is_declaration: value(gimli::DW_AT_declaration).is_some(),
            has_abstract_origin: value(gimli::DW_AT_abstract_origin).is_some(),
            has_addresses: [
                gimli::DW_AT_low_pc,
                gimli::DW_AT_ranges,
                gimli::DW_AT_entry_pc,
            ]
            .into_iter()
            .any(|attribute| value(attribute).is_some()),
            numbers: [
                gimli::DW_AT_decl_file,
                gimli::DW_AT_decl_line,
                gimli::DW_AT_call_file,
                gimli::DW_AT_call_line,
            ]
            .map(number),
        });
    }
    found
}

fn read_with_scanner(unit: &DebugUnit<'_>) -> Vec<Entry> {
    let mut scanner =
        DieScanner::new(unit.dwarf, &unit.unit.header, &is_function_or_inlined).expect("a unit");
    let mut found = Vec::new();
    while let Some(entry) = scanner.next() {
        // The predicate of `has_name` is a `Fn`: it collects the names behind a lock, and accepts none, so that it gets all.
        let names = Mutex::new(Vec::new());
        let is_found = scanner.has_name(&entry.names, &|name| {
            names.lock().expect("no panic").push(name.to_owned());
            false
        });
        assert!(!is_found);
        found.push(Entry {
            offset: entry.offset.0,
            tag: entry.tag,
            depth: entry.depth,
            names: names.into_inner().expect("no panic"),
            origin: entry.origin.map(|origin| match origin {
                DieReference::SameUnit(offset) => Some(offset.0),
                DieReference::OtherUnit => None,
            }),
            is_declaration: entry.is_declaration,
            has_abstract_origin: entry.has_abstract_origin,
            has_addresses: entry.has_addresses,
            numbers: [
                entry.declared_file,
                entry.declared_line,
                entry.call_file,
                entry.call_line,
            ],
        });
    }
    found
}

/// Compiles `program` in the directory `number` of `dir`; `None` if that fails.
fn build(dir: &Path, number: usize, program: &Program) -> Option<PathBuf> {
    let Program {
        compiler,
        flags,
        sources,
    } = program;
    let dir = dir.join(number.to_string());
    std::fs::create_dir_all(&dir).expect("a folder");
    for (name, text) in [("c.c", C), ("other.c", OTHER), ("cpp.cpp", CPP)] {
        std::fs::write(dir.join(name), text).expect("a source");
    }
    let mut command = Command::new(compiler);
    command.args(*flags).args(*sources).args(["-o", "program"]);
    let output = command.current_dir(&dir).output();
    let is_built = output.as_ref().is_ok_and(|output| output.status.success());
    if !is_built {
        eprintln!("skipped: {compiler} {flags:?} doesn't build: {output:?}");
        return None;
    }
    Some(dir.join("program"))
}

fn open(program: &Path) -> DebugInfo {
    let paths = SearchPaths::new(None);
    let request = ObjectRequest::new(program, ObjectKind::User);
    let loaded = load(&Disk, &paths, &request);
    let source = loaded.debug.expect("it is read");
    DebugInfo::open(&Disk, &paths, &source).expect("it has debug information")
}

fn each_unit(info: &DebugInfo, prefilter: UnitPrefilter<'_>, visit: &mut dyn FnMut(DebugUnit<'_>)) {
    let missing = info.for_each_unit(&Disk, &prefilter, &mut |unit| {
        visit(unit);
        ControlFlow::Continue(())
    });
    // `missing` counts the units whose `.dwo` file is missing.
    assert_eq!(missing, 0);
}

/// A prefilter that accepts all units: no function is searched for, and `keep` adds no other criterion.
fn every_unit() -> UnitPrefilter<'static> {
    UnitPrefilter {
        threads: NonZeroUsize::MIN,
        function: None,
        keep: None,
    }
}

fn functions(entries: &[Entry]) -> impl Iterator<Item = &Entry> {
    entries
        .iter()
        .filter(|entry| entry.tag == gimli::DW_TAG_subprogram)
}

/// Whether `function` is called `name`; `None` if that depends on another unit.
fn is_called(entries: &[Entry], function: &Entry, name: &str) -> Option<bool> {
    let mut entry = function;
    for _ in 0..MAX_ORIGINS {
        if entry.names.iter().any(|found| found == name) {
            return Some(true);
        }
        let Some(origin_offset) = entry.origin else {
            return Some(false);
        };
        match functions(entries).find(|entry| Some(entry.offset) == origin_offset) {
            Some(origin) => entry = origin,
            None if origin_offset.is_none() => return None,
            None => break,
        }
    }
    Some(false)
}

/// Whether a function that is not a declaration is called `name`; `None` if that depends on another unit.
fn defines(entries: &[Entry], name: &str) -> Option<bool> {
    let defined = functions(entries).filter(|entry| !entry.is_declaration);
    let answers: Vec<_> = defined
        .map(|entry| is_called(entries, entry, name))
        .collect();
    match answers.contains(&Some(true)) {
        true => Some(true),
        false => (!answers.contains(&None)).then_some(false),
    }
}

/// Compares the functions of a unit, and the instances in it (entries with an abstract origin, inlined or not), as read by the
/// scanner and by gimli.
fn compare_functions(unit: &DebugUnit<'_>, name: &str) {
    let entries = read_with_gimli(unit);
    let offsets = |is_selected: &dyn Fn(&Entry) -> bool| -> Vec<UnitOffset> {
        let selected =
            functions(&entries).filter(|entry| !entry.is_declaration && is_selected(entry));
        selected.map(|entry| UnitOffset(entry.offset)).collect()
    };
    let with_code = offsets(&|entry| entry.has_addresses);
    let header = &unit.unit.header;
    // Without wanted names, only functions with code are read.
    let found = FunctionEntries::read(unit.dwarf, header, None);
    assert_eq!(
        (found.with_code, found.with_wanted_name.len()),
        (with_code.clone(), 0)
    );
    // The answer for functions whose name may be in another unit.
    for has_wanted_name in [false, true] {
        let wanted = WantedNames {
            is_wanted: &|other| other == name,
            cached_names: unit.cached_names,
            has_wanted_name: &|_| has_wanted_name,
        };
        let found = FunctionEntries::read(unit.dwarf, header, Some(wanted));
        let named = offsets(&|entry| is_called(&entries, entry, name).unwrap_or(has_wanted_name));
        assert_eq!(found.with_wanted_name, named, "{name}");
        assert_eq!(found.with_code, with_code, "{name}");
    }
    let instances = entries.iter().filter(|entry| entry.has_abstract_origin);
    let expected: Vec<_> = instances
        .map(|entry| (entry.offset, entry.origin))
        .collect();
    let mut found = Vec::new();
    let scanner = DieScanner::new(unit.dwarf, header, &is_function_or_inlined).expect("a unit");
    scanner.for_each_instance(&mut |offset, origin| {
        let origin = match origin {
            DieReference::SameUnit(origin) => Some(origin.0),
            DieReference::OtherUnit => None,
        };
        found.push((offset.0, Some(origin)));
    });
    assert_eq!(found, expected);
}

/// Checks that `next_unless` skips exactly the inlined calls that its predicate accepts: here, those whose call file has an odd
/// number. A call is identified by its call file and origin. Calls about which the predicate is not asked are returned.
fn compare_calls(unit: &DebugUnit<'_>) {
    let entries = read_with_gimli(unit);
    let mut scanner =
        DieScanner::new(unit.dwarf, &unit.unit.header, &is_function_or_inlined).expect("a unit");
    let mut skipped = BTreeSet::new();
    let mut returned = BTreeSet::new();
    while let Some(entry) = scanner.next_unless(&mut |call| {
        let skips_call = call.file % 2 == 1;
        skipped.extend(skips_call.then_some((call.file, Some(Some(call.origin.0)))));
        skips_call
    }) {
        returned.insert(entry.offset.0);
    }
    for entry in &entries {
        let [_, _, call_file, _] = entry.numbers;
        let call = call_file.map(|file| (file, entry.origin));
        let is_skipped = call.is_some_and(|call| skipped.contains(&call));
        assert_eq!(returned.contains(&entry.offset), !is_skipped, "{entry:?}");
    }
}

/// The offset of a unit (of its skeleton, for split DWARF) in `.debug_info`.
fn unit_offset(unit: &DebugUnit<'_>) -> Option<usize> {
    unit.line_unit.header.debug_info_offset().map(|at| at.0)
}

/// Checks that the units at an address include the unit whose ranges contain it, and that later lookups return the same units:
/// the first lookup in an opened program reads the ranges without an index, later ones use an index of all addresses.
fn compare_addresses(program: &Path, info: &DebugInfo) {
    let units_at = |info: &DebugInfo, address| {
        let mut found = Vec::new();
        info.for_units_at(&Disk, address, &mut |unit| {
            found.push(unit_offset(&unit));
            ControlFlow::Continue(())
        });
        found
    };
    // The first and last addresses of ranges, each with the offset of its unit.
    let mut ends = Vec::new();
    each_unit(info, every_unit(), &mut |unit| {
        let offset = unit_offset(&unit);
        let mut ranges = unit
            .line_dwarf
            .unit_ranges(&unit.line_unit)
            .expect("ranges");
        while let Some(range) = ranges.next().expect("a range") {
            // The linker sets ranges of removed code to 0.
            if range.begin != 0 {
                ends.extend([(range.begin, offset), (range.end - 1, offset)]);
            }
        }
    });
    // Opening the program for each address takes time.
    ends.truncate(8);
    for (address, offset) in ends {
        let fresh = open(program);
        let found = units_at(&fresh, address);
        assert!(found.contains(&offset), "{address:#x} {found:?}");
        assert_eq!(units_at(&fresh, address), found, "{address:#x}");
        assert_eq!(units_at(info, address), found, "{address:#x}");
    }
}

/// Compares the units with a function called `name`, as found by gimli and by the prefilter. The prefilter is given the complete
/// name, then only its start, then no start. On both sides, a unit is also selected if only another unit could tell whether it
/// has the function.
fn compare(program: &Path, info: &DebugInfo, name: &str) {
    let is_in = |unit: DebugUnit<'_>| defines(&read_with_gimli(&unit), name) != Some(false);
    let mut expected = BTreeSet::new();
    each_unit(info, every_unit(), &mut |unit| {
        let at = unit_offset(&unit);
        if is_in(unit) {
            expected.insert(at);
        }
    });
    for start in [name, name.get(..3).unwrap_or_default(), ""] {
        let mut found = BTreeSet::new();
        let prefilter = UnitPrefilter {
            function: Some(FunctionQuery {
                start,
                matches: &|other| other == name,
                is_in_unit: &is_in,
            }),
            ..every_unit()
        };
        each_unit(info, prefilter, &mut |unit| {
            found.insert(unit_offset(&unit));
            compare_functions(&unit, name);
        });
        assert_eq!(found, expected, "{name} in {}", program.display());
    }
}

#[test]
fn scanner_and_prefilter_find_the_same_functions_as_gimli() {
    let dir = scratch("die-scanner");
    let mut built = 0;
    for (number, program) in PROGRAMS.iter().enumerate() {
        let Some(program) = build(&dir, number, program) else {
            continue;
        };
        built += 1;
        let info = open(&program);
        // No function has these names; "in" is the start of one.
        let mut names = BTreeSet::from(["nowhere".to_owned(), "in".to_owned()]);
        each_unit(&info, every_unit(), &mut |unit| {
            let expected = read_with_gimli(&unit);
            assert_eq!(read_with_scanner(&unit), expected, "{}", program.display());
            compare_functions(&unit, "outer");
            compare_calls(&unit);
            names.extend(expected.into_iter().flat_map(|entry| entry.names));
        });
        assert!(names.contains("main"), "{names:?}");
        compare_addresses(&program, &info);
        // Each name takes several passes with gimli, so only some eight names are compared.
        for name in names.iter().step_by(names.len().div_ceil(8)) {
            compare(&program, &info, name);
        }
    }
    assert!(built > 0 || Command::new("cc").arg("--version").output().is_err());
}

#[test]
fn damage_does_not_move_the_scan_out_of_the_unit() {
    let dir = scratch("die-scanner-damage");
    let Some(program) = build(&dir, 0, &Program::c(&["-O2", "-g"])) else {
        return;
    };
    let info = open(&program);
    each_unit(&info, every_unit(), &mut |unit| {
        let bytes = unit.dwarf.debug_info;
        let start = unit.unit.header.debug_info_offset().map_or(0, |at| at.0);
        let root = start + unit.unit.header.root_offset().0;
        let section = gimli::Section::reader(&bytes).slice().to_vec();
        // One byte at a time is damaged, in this unit or a later one; only every seventh, to save time.
        for at in (root..section.len()).step_by(7) {
            let mut damaged = section.clone();
            damaged[at] ^= 0xff;
            let endian = gimli::Section::reader(&bytes).endian();
            let slice = Slice::new(&damaged, endian);
            let dwarf = gimli::Dwarf {
                debug_info: gimli::DebugInfo::from(slice),
                debug_abbrev: unit.dwarf.debug_abbrev,
                ..gimli::Dwarf::default()
            };
            if let Ok(header) = dwarf.unit_header(gimli::DebugInfoOffset(start))
                && let Some(scanner) = DieScanner::new(&dwarf, &header, &is_function_or_inlined)
            {
                let end = UnitOffset(header.length_including_self());
                assert!(scanner.into_iter().all(|entry| entry.offset < end));
            }
        }
    });
}

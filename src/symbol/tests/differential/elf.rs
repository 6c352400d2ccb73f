//! Symbols of objects of the running system, and of objects built for the test, compared with perf. The last two tests do not
//! run perf.

use std::path::{Path, PathBuf};
use std::process::Command;

use rperf_symbol::{
    BuildId, ObjectKind, ObjectRequest, SearchPaths, SymbolFinding, SymbolKind, load,
};

use crate::perf_data::{Mapping, perf_is_here};
use crate::{Disk, assert_no_differences, differences, scratch};

/// The mapping address of objects; any page will do.
const START: u64 = 0x5555_0000_0000;

/// Compares the symbols of `object`, read from it or from what belongs to it (debug file, cache), with perf's.
fn compare(dir: &Path, object: &Path) {
    let Ok(metadata) = object.metadata() else {
        eprintln!("skipped: no {}", object.display());
        return;
    };
    let paths = SearchPaths::new(Some(dir.join("cache")));
    let request = ObjectRequest::new(object, ObjectKind::User);
    let loaded = load(&Disk, &paths, &request);
    let mapping = Mapping {
        kernel: false,
        start: START,
        len: metadata.len().next_multiple_of(4096),
        pgoff: 0,
        name: object.to_str().expect("a printable path"),
    };
    assert_no_differences(mapping.name, &differences(&loaded, dir, &mapping, &[]));
}

#[test]
fn objects_of_the_system_have_perfs_symbols() {
    if !perf_is_here() {
        return;
    }
    let dir = scratch("system");
    let libraries = Path::new("/usr/lib").join(format!("{}-linux-gnu", std::env::consts::ARCH));
    let objects = [
        libraries.join("libc.so.6"),
        libraries.join("libstdc++.so.6"),
        PathBuf::from("/bin/true"),
        std::env::current_exe().expect("this test has a path"),
    ];
    for object in objects {
        compare(&dir, &object);
    }
}

/// Runs `program` and returns whether it succeeded; prints why not.
pub(crate) fn run(program: &str, arguments: &[&str]) -> bool {
    match Command::new(program).args(arguments).output() {
        Ok(output) if output.status.success() => true,
        Ok(output) => {
            eprintln!(
                "skipped: {program} {arguments:?}: {}",
                String::from_utf8_lossy(&output.stderr)
            );
            false
        }
        Err(error) => {
            eprintln!("skipped: {program}: {error}");
            false
        }
    }
}

/// C++ names of many forms, and overlapping symbols.
const PROGRAM: &str = include_str!("program.cpp");

#[test]
fn programs_built_with_different_flags_have_perfs_symbols() {
    let dir = scratch("linked");
    let source = dir.join("program.cpp");
    std::fs::write(&source, PROGRAM).expect("the source is written");
    if !perf_is_here() {
        return;
    }
    let flag_sets: [&[&str]; 4] = [
        &["-O0"],
        &["-O2", "-Wl,-z,now"],
        &["-O1", "-no-pie"],
        &["-O1", "-shared", "-fPIC", "-DSHARED"],
    ];
    for (number, flags) in flag_sets.iter().enumerate() {
        let object = dir.join(format!("object{number}"));
        let (source, object_name) = (
            source.to_str().expect("a path"),
            object.to_str().expect("a path"),
        );
        let mut arguments = flags.to_vec();
        arguments.extend(["-g", "-o", object_name, source]);
        if !run("g++", &arguments) {
            return;
        }
        // With symbols and debug information in the object.
        compare(&dir, &object);
        if !run(
            "objcopy",
            &[
                "--only-keep-debug",
                object_name,
                &format!("{object_name}.debug"),
            ],
        ) || !run("strip", &[object_name])
        {
            continue;
        }
        // Stripped, without a link to the debug file.
        compare(&dir, &object);
        let link = format!("--add-gnu-debuglink={object_name}.debug");
        if run("objcopy", &[&link, object_name]) {
            // The debug file is next to the object, then in `.debug`.
            compare(&dir, &object);
            std::fs::create_dir_all(dir.join(".debug")).expect("a directory");
            std::fs::rename(
                format!("{object_name}.debug"),
                dir.join(format!(".debug/object{number}.debug")),
            )
            .expect("the debug file is moved");
            compare(&dir, &object);
        }
    }
}

#[test]
fn the_cache_is_preferred_to_the_object() {
    if !perf_is_here() {
        return;
    }
    let dir = scratch("cached");
    let object = dir.join("object");
    let source = dir.join("program.cpp");
    std::fs::write(&source, PROGRAM).expect("the source is written");
    let name = object.to_str().expect("a path");
    if !run(
        "g++",
        &[
            "-Wl,--build-id",
            "-o",
            name,
            source.to_str().expect("a path"),
        ],
    ) {
        return;
    }
    let id = rperf_symbol::build_id_of_elf(&std::fs::read(&object).expect("the object"))
        .expect("its build-id");
    let entry = rperf_symbol::cache_entry(&dir.join("cache"), &id);
    std::fs::create_dir_all(&entry).expect("a cache");
    std::fs::copy(&object, entry.join("elf")).expect("the cached copy");
    // From here on, only the cached copy has a symbol table.
    if !run("strip", &[name]) {
        return;
    }
    // The request has no build-id: the one in the stripped object leads to the cached copy.
    let request = ObjectRequest::new(&object, ObjectKind::User);
    let loaded = load(&Disk, &SearchPaths::new(Some(dir.join("cache"))), &request);
    assert_eq!(loaded.source, entry.join("elf"));
    compare(&dir, &object);
}

#[test]
fn a_file_of_another_build_is_refused() {
    let wanted = BuildId::from_bytes(&[7; 20]).expect("a build-id");
    let object = std::env::current_exe().expect("this test has a path");
    let request = ObjectRequest::new(&object, ObjectKind::User).with_build_id(Some(&wanted));
    let loaded = load(&Disk, &SearchPaths::new(None), &request);
    assert!(loaded.table.is_empty());
    assert!(matches!(
        loaded.findings.as_slice(),
        [SymbolFinding::BuildIdMismatch { .. }]
    ));
}

/// Fedora's MiniDebugInfo: a stripped program with further symbols in an embedded compressed file. perf 6.1 cannot read
/// it, so the expected symbols are those of the program before it was stripped.
#[test]
fn names_in_gnu_debugdata_are_found() {
    let dir = scratch("debugdata");
    let (source, object) = (dir.join("program.cpp"), dir.join("object"));
    std::fs::write(&source, PROGRAM).expect("the source is written");
    let name = object.to_str().expect("a path");
    if !run(
        "g++",
        &["-O1", "-o", name, source.to_str().expect("a path")],
    ) {
        return;
    }
    let request = ObjectRequest::new(&object, ObjectKind::User);
    let unstripped = load(&Disk, &SearchPaths::new(None), &request);
    // xz adds `.xz` to the name.
    let debug = format!("{name}.small");
    let section = format!(".gnu_debugdata={debug}.xz");
    if !run("objcopy", &["--only-keep-debug", name, &debug])
        // The list of symbols to keep is empty.
        || !run("objcopy", &["-S", "--keep-symbols=/dev/null", name])
        || !run("xz", &[&debug])
        || !run("objcopy", &["--add-section", &section, name])
    {
        return;
    }
    let loaded = load(&Disk, &SearchPaths::new(None), &request);
    assert_eq!(loaded.findings, []);
    assert_eq!(loaded.source, object);
    let mut functions = 0;
    for (index, symbol) in unstripped
        .table
        .iter()
        .filter(|(_, symbol)| symbol.kind == SymbolKind::Function)
    {
        let found = loaded
            .table
            .find(symbol.start)
            .map(|index| loaded.table.name(index));
        assert_eq!(
            found,
            Some(unstripped.table.name(index)),
            "{:#x}",
            symbol.start
        );
        functions += 1;
    }
    // Otherwise almost nothing was compared.
    assert!(functions > 50);
}

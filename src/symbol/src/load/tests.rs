use std::path::{Path, PathBuf};

use object::Endianness;

use super::*;
use crate::build_id::BuildId;
use crate::candidates::cache_entry;
use crate::elf::tiny::{PLT_ENTRY, TEXT_ADDRESS, TEXT_OFFSET, TinyElf};
use crate::files::FileBytes;
use crate::files::MemoryFiles;
use crate::origin::SymbolOrigin;

const CACHE: &str = "/home/ada/.debug";
/// For recordings without the build-id of the kernel.
const NO_BUILD_ID: Option<&BuildId> = None;

fn paths() -> SearchPaths {
    SearchPaths::new(Some(PathBuf::from(CACHE)))
}

/// Returns a build-id of equal bytes: that of `TinyElf::default()` is `id(0xab)`.
fn id(byte: u8) -> BuildId {
    BuildId::from_bytes(&[byte; 20]).expect("a build-id")
}

/// Returns the start, the end and the name of each symbol.
fn ranges_and_names(table: &SymbolTable) -> Vec<(u64, u64, String)> {
    let named = table
        .iter()
        .map(|(at, symbol)| (symbol.start, symbol.end, table.name(at).into_owned()));
    named.collect()
}

#[test]
fn symbols_are_read_from_every_class_and_byte_order() {
    for is_64 in [true, false] {
        for endian in [Endianness::Little, Endianness::Big] {
            let mut files = MemoryFiles::new();
            files.insert(
                "/bin/app",
                TinyElf {
                    endian,
                    is_64,
                    ..TinyElf::default()
                }
                .build(),
            );
            let request = ObjectRequest::new(Path::new("/bin/app"), ObjectKind::User);
            let loaded = load(&files, &paths(), &request);
            assert_eq!(loaded.findings, []);
            let plt = TEXT_OFFSET + 32;
            let expected = [
                (TEXT_OFFSET, TEXT_OFFSET + 8, "first".to_owned()),
                // The last symbol of the symbol table has no size: it extends to the end of the page after its own, over the PLT.
                (TEXT_OFFSET + 16, 0x2000, "second".to_owned()),
                (plt + PLT_ENTRY, plt + 2 * PLT_ENTRY, "puts@plt".to_owned()),
                (plt + 2 * PLT_ENTRY, plt + 3 * PLT_ENTRY, "f@plt".to_owned()),
            ];
            assert_eq!(
                ranges_and_names(&loaded.table),
                expected,
                "64-bit: {is_64}, {endian:?}"
            );
        }
    }
}

#[test]
fn files_are_found_without_reading_symbols() {
    let mut files = MemoryFiles::new();
    files.insert("/bin/app", TinyElf::default().build());
    let locate = |path| {
        let request = ObjectRequest::new(Path::new(path), ObjectKind::User);
        ObjectFiles::find(&files, &paths(), &request)
    };
    let located = locate("/bin/app");
    assert_eq!(located.debug().unwrap().path(), Path::new("/bin/app"));
    // String tables are searched for parts of mangled names (`_Z5firstv`), also of imported functions (`puts`).
    assert!(
        located.may_have_name_with("first")
            && located.may_have_name_with("irs")
            && located.may_have_name_with("puts")
    );
    assert!(!located.may_have_name_with("first.") && !located.may_have_name_with("third"));
    assert_eq!(located.read().table.len(), 4);
    let absent = locate("/bin/other");
    assert!(absent.debug().is_none() && !absent.may_have_name_with("first"));
    assert!(absent.read().table.is_empty());
}

#[test]
fn names_stay_mangled_on_request() {
    let mut files = MemoryFiles::new();
    files.insert("/bin/app", TinyElf::default().build());
    let request = ObjectRequest::new(Path::new("/bin/app"), ObjectKind::User);
    let loaded = load(
        &files,
        &SearchPaths {
            demangle: false,
            ..paths()
        },
        &request,
    );
    let symbol_names: Vec<_> = ranges_and_names(&loaded.table)
        .into_iter()
        .map(|(.., name)| name)
        .collect();
    assert_eq!(
        symbol_names,
        ["_Z5firstv", "second", "puts@plt", "_Z1fi@plt"]
    );
}

#[test]
fn debug_files_are_searched_in_perfs_order() {
    let places = [
        format!("{}/elf", cache_entry(Path::new(CACHE), &id(0xab)).display()),
        format!(
            "{}/debug",
            cache_entry(Path::new(CACHE), &id(0xab)).display()
        ),
        "/usr/lib/debug/usr/lib/libx.so.debug".to_owned(),
        "/usr/lib/debug/usr/lib/libx.so".to_owned(),
        format!("/usr/lib/debug/.build-id/ab/{}.debug", "ab".repeat(19)),
        "/usr/lib/libx.so".to_owned(),
        "/usr/lib/.debug/libx.so".to_owned(),
        "/usr/lib/debug/lib/libx.so".to_owned(),
    ];
    let build_id = id(0xab);
    let request = ObjectRequest::new(Path::new("/usr/lib/libx.so"), ObjectKind::User)
        .with_build_id(Some(&build_id));
    for first in 0..places.len() {
        let mut files = MemoryFiles::new();
        for place in places.iter().skip(first) {
            files.insert(place, TinyElf::default().build());
        }
        let loaded = load(&files, &paths(), &request);
        assert_eq!(
            loaded.source.to_str(),
            places.get(first).map(String::as_str)
        );
    }
}

#[test]
fn files_with_another_build_id_are_skipped() {
    let mut files = MemoryFiles::new();
    files.insert(
        "/usr/lib/debug/bin/app",
        TinyElf {
            build_id: [1; 20],
            ..TinyElf::default()
        }
        .build(),
    );
    files.insert("/bin/app", TinyElf::default().build());
    let build_id = id(0xab);
    let request =
        ObjectRequest::new(Path::new("/bin/app"), ObjectKind::User).with_build_id(Some(&build_id));
    let loaded = load(&files, &paths(), &request);
    assert_eq!(loaded.source, Path::new("/bin/app"));
    assert!(
        matches!(loaded.findings.as_slice(), [SymbolFinding::BuildIdMismatch { found: Some(found), .. }] if *found == id(1))
    );
}

#[test]
fn the_path_is_prefixed_with_symfs() {
    let mut files = MemoryFiles::new();
    files.insert("/target/bin/app", TinyElf::default().build());
    let request = ObjectRequest::new(Path::new("/bin/app"), ObjectKind::User);
    let at_target = SearchPaths {
        symfs: Some(PathBuf::from("/target")),
        ..paths()
    };
    assert_eq!(load(&files, &at_target, &request).table.len(), 4);
    let without = load(&files, &paths(), &request);
    assert_eq!(
        without.findings,
        [SymbolFinding::NotFound {
            path: "/bin/app".into()
        }]
    );
}

#[test]
fn the_vdso_is_read_from_the_given_image_or_the_cache() {
    let image = FileBytes::from(TinyElf::default().build());
    let request = ObjectRequest {
        image: Some(&image),
        ..ObjectRequest::new(Path::new("[vdso]"), ObjectKind::Vdso)
    };
    let loaded = load(&MemoryFiles::new(), &paths(), &request);
    assert_eq!(loaded.table.len(), 4, "{:?}", loaded.findings);
    let other = id(3);
    let mut files = MemoryFiles::new();
    files.insert(
        cache_entry(Path::new(CACHE), &other).join("vdso"),
        TinyElf {
            build_id: [3; 20],
            ..TinyElf::default()
        }
        .build(),
    );
    // The given image does not have the requested build-id, so the image in the cache is read.
    let loaded = load(&files, &paths(), &request.with_build_id(Some(&other)));
    assert!(loaded.source.ends_with("vdso"), "{loaded:?}");
}

#[test]
fn damaged_files_do_not_panic() {
    for tiny in [
        TinyElf::default(),
        TinyElf {
            is_64: false,
            endian: Endianness::Big,
            ..TinyElf::default()
        },
    ] {
        let complete = tiny.build();
        let request = ObjectRequest::new(Path::new("/bin/app"), ObjectKind::User);
        let mut files = MemoryFiles::new();
        for len in 0..complete.len() {
            files.insert("/bin/app", complete[..len].to_vec());
            let loaded = load(&files, &paths(), &request);
            assert!(!loaded.findings.is_empty(), "truncated to {len} bytes");
        }
        for at in 0..complete.len() {
            for value in [0, 0x7f, 0xff] {
                let mut damaged = complete.clone();
                damaged[at] = value;
                files.insert("/bin/app", damaged);
                let loaded = load(&files, &paths(), &request);
                // Reads each name. The limit is far above the length of any name in the file.
                loaded
                    .table
                    .iter()
                    .for_each(|(index, _)| assert!(loaded.table.name(index).len() < 4096));
            }
        }
    }
}

const LISTING: &str =
    "ffffffff81000000 T _text\nffffffff81000100 t work\nffffffffc0000000 t probe\t[mod]\n";

/// Returns `/proc/kallsyms` of a running kernel with the build-id `id(running)`, and a kallsyms of another kernel, `id(2)`, in
/// the build-id cache.
fn kernel_files(running: u8) -> MemoryFiles {
    let mut notes = Vec::new();
    // Lengths of owner and build-id, NT_GNU_BUILD_ID.
    for word in [4u32, 20, 3] {
        notes.extend(word.to_ne_bytes());
    }
    notes.extend(b"GNU\0");
    notes.extend([running; 20]);
    let mut files = MemoryFiles::new();
    files.insert("/sys/kernel/notes", notes);
    files.insert("/proc/kallsyms", LISTING.as_bytes().to_vec());
    files.insert(
        format!("{CACHE}/[kernel.kallsyms]/{}/kallsyms", id(2)),
        LISTING.replace("work", "old_work").into_bytes(),
    );
    files
}

/// Returns the name found in the recorded kernel 0x110 bytes after its `_text`, otherwise the findings.
fn kernel_name(
    files: &MemoryFiles,
    paths: &SearchPaths,
    build_id: Option<&BuildId>,
) -> Result<String, Vec<SymbolFinding>> {
    let request = ObjectRequest {
        relocation: Some(("_text", 0xffff_ffff_8200_0000)),
        ..ObjectRequest::new(Path::new("[kernel.kallsyms]_text"), ObjectKind::Kernel)
            .with_build_id(build_id)
    };
    let loaded = load(files, paths, &request);
    let found = loaded.table.find(0xffff_ffff_8200_0110);
    found
        .map(|at| loaded.table.name(at).into_owned())
        .ok_or(loaded.findings)
}

#[test]
fn kallsyms_is_of_the_recorded_kernel() {
    let files = kernel_files(1);
    assert_eq!(
        kernel_name(&files, &paths(), NO_BUILD_ID).as_deref(),
        Ok("work")
    );
    assert_eq!(
        kernel_name(&files, &paths(), Some(&id(1))).as_deref(),
        Ok("work")
    );
    assert_eq!(
        kernel_name(&files, &paths(), Some(&id(2))).as_deref(),
        Ok("old_work")
    );
    assert_eq!(
        kernel_name(&files, &paths(), Some(&id(3))),
        Err(vec![SymbolFinding::NoKernelSymbols { build_id: id(3) }])
    );
    let given = SearchPaths {
        kallsyms_override: Some("/proc/kallsyms".into()),
        ..paths()
    };
    assert_eq!(
        kernel_name(&files, &given, Some(&id(3))).as_deref(),
        Ok("work")
    );
}

#[test]
fn hidden_addresses_and_a_missing_relocation_symbol_are_reported() {
    let mut files = kernel_files(1);
    files.insert("/proc/kallsyms", b"0000000000000000 T _text\n".to_vec());
    let path = PathBuf::from("/proc/kallsyms");
    assert_eq!(
        kernel_name(&files, &paths(), NO_BUILD_ID),
        Err(vec![SymbolFinding::KernelAddressesHidden {
            path: path.clone()
        }])
    );
    files.insert("/proc/kallsyms", b"ffffffff81000000 T _stext\n".to_vec());
    assert_eq!(
        kernel_name(&files, &paths(), NO_BUILD_ID),
        Err(vec![SymbolFinding::NoRelocationSymbol {
            path,
            symbol: "_text".into()
        }])
    );
}

#[test]
fn a_vmlinux_with_the_build_id_is_preferred_to_kallsyms() {
    let mut files = kernel_files(0xab);
    let symbols = vec![
        ("_text", TEXT_ADDRESS, 0x100),
        ("work_in_image", TEXT_ADDRESS + 0x100, 0x100),
    ];
    files.insert(
        "/boot/vmlinux-6.1",
        TinyElf {
            symbols,
            ..TinyElf::default()
        }
        .build(),
    );
    let with_image = paths().with_kernel_release("6.1");
    assert_eq!(
        kernel_name(&files, &with_image, Some(&id(0xab))).as_deref(),
        Ok("work_in_image")
    );
    assert_eq!(
        kernel_name(&files, &with_image, Some(&id(2))).as_deref(),
        Ok("old_work")
    );
}

#[test]
fn names_in_a_vmlinux_are_demangled_on_request() {
    let mut files = kernel_files(0xab);
    let symbols = vec![
        ("_text", TEXT_ADDRESS, 0x100),
        ("_Z4workv", TEXT_ADDRESS + 0x100, 0x100),
    ];
    let image = TinyElf {
        symbols,
        ..TinyElf::default()
    };
    files.insert("/boot/vmlinux-6.1", image.build());
    for (demangle_kernel, expected) in [(false, "_Z4workv"), (true, "work")] {
        let with_image = SearchPaths {
            demangle_kernel,
            ..paths().with_kernel_release("6.1")
        };
        let name = kernel_name(&files, &with_image, Some(&id(0xab)));
        assert_eq!(name.as_deref(), Ok(expected));
    }
}

#[test]
fn symbols_of_modules_are_read_from_kallsyms() {
    let files = kernel_files(1);
    for name in ["[mod]", "/lib/modules/6.1/kernel/mod.ko.xz"] {
        let request = ObjectRequest::new(Path::new(name), ObjectKind::KernelModule);
        let loaded = load(&files, &paths(), &request);
        let found = loaded
            .table
            .find(0xffff_ffff_c000_0010)
            .map(|at| loaded.table.name(at).into_owned());
        assert_eq!(found.as_deref(), Some("probe"), "{name}");
    }
}

#[test]
fn modules_of_another_kernel_get_no_symbols_of_the_running_one() {
    let files = kernel_files(1);
    let other = id(3);
    let request = ObjectRequest {
        kernel_build_id: Some(&other),
        ..ObjectRequest::new(Path::new("[mod]"), ObjectKind::KernelModule)
    };
    let loaded = load(&files, &paths(), &request);
    assert_eq!(
        loaded.findings,
        [SymbolFinding::NoKernelSymbols { build_id: other }]
    );
}

#[test]
fn missing_perf_maps_are_not_reported() {
    let request = ObjectRequest::new(Path::new("/tmp/perf-1.map"), ObjectKind::PerfMap);
    let loaded = load(&MemoryFiles::new(), &paths(), &request);
    assert!(loaded.table.is_empty() && loaded.findings.is_empty());
}

#[test]
fn files_of_another_mount_namespace_are_found() {
    let mut files = MemoryFiles::new();
    let other = TinyElf {
        build_id: [1; 20],
        ..TinyElf::default()
    };
    files.insert("/bin/app", other.build());
    files.insert("/proc/77/root/bin/app", TinyElf::default().build());
    let build_id = id(0xab);
    let request = |path| ObjectRequest {
        pid: Some(77),
        ..ObjectRequest::new(path, ObjectKind::User).with_build_id(Some(&build_id))
    };
    let loaded = load(&files, &paths(), &request(Path::new("/bin/app")));
    assert_eq!(loaded.source, Path::new("/proc/77/root/bin/app"));
    assert!(!loaded.table.is_empty());
    let origin = SymbolOrigin::of(&loaded, &request(Path::new("/bin/app")), &paths());
    assert_eq!(origin, Some(SymbolOrigin::Object));
    let loaded = load(&files, &paths(), &request(Path::new("/bin/app (deleted)")));
    assert_eq!(loaded.source, Path::new("/proc/77/root/bin/app"));
    // Process 76 has exited, 75 has another file at the path, and 77 has the right one.
    let exited = ObjectRequest {
        pid: Some(76),
        other_pids: &[75, 77],
        ..request(Path::new("/bin/app"))
    };
    files.insert("/proc/75/root/bin/app", other.build());
    let loaded = load(&files, &paths(), &exited);
    assert_eq!(loaded.source, Path::new("/proc/77/root/bin/app"));
    // Without a recorded build-id, the file in the mount namespace can't be verified.
    let unknown = ObjectRequest {
        pid: Some(77),
        ..ObjectRequest::new(Path::new("/gone"), ObjectKind::User)
    };
    files.insert("/proc/77/root/gone", TinyElf::default().build());
    assert!(load(&files, &paths(), &unknown).table.is_empty());
}

#[test]
fn a_deleted_file_is_found_at_its_path_if_the_build_is_the_same() {
    let mut files = MemoryFiles::new();
    files.insert("/bin/app", TinyElf::default().build());
    let path = Path::new("/bin/app (deleted)");
    for (byte, is_same) in [(0xab, true), (1, false)] {
        let build_id = id(byte);
        let request = ObjectRequest::new(path, ObjectKind::User).with_build_id(Some(&build_id));
        let loaded = load(&files, &paths(), &request);
        assert_eq!(!loaded.table.is_empty(), is_same);
        let replaced = matches!(loaded.findings[..], [SymbolFinding::BuildIdMismatch { .. }]);
        assert_eq!(replaced, !is_same);
    }
}

#[test]
fn perf_maps_and_jitdumps_are_found_in_order() {
    let map = Path::new("/tmp/perf-77.map");
    let dump = Path::new("/home/ada/.debug/jit/jit-3.dump");
    let request = ObjectRequest {
        pid: Some(77),
        jit_dump: Some(dump),
        ..ObjectRequest::new(map, ObjectKind::PerfMap)
    };
    let mut files = MemoryFiles::new();
    // Each file that is added below is preferred to those before it.
    let source = |files: &MemoryFiles| load(files, &paths(), &request).source;
    assert_eq!(source(&files), Path::new(""));
    // The header of a dump without functions.
    let mut header = b"DTiJ\x01\0\0\0\x28\0\0\0".to_vec();
    header.resize(40, 0);
    files.insert(
        Path::new("/proc/77/root").join("home/ada/.debug/jit/jit-3.dump"),
        header.clone(),
    );
    assert!(source(&files).starts_with("/proc/77/root/home"));
    files.insert(dump, header);
    assert_eq!(source(&files), dump);
    files.insert("/proc/77/status", b"Name:\tjit\nNSpid:\t77\t3\n".to_vec());
    files.insert("/proc/77/root/tmp/perf-3.map", b"1000 10 inside\n".to_vec());
    assert_eq!(source(&files), Path::new("/proc/77/root/tmp/perf-3.map"));
    files.insert(map, b"1000 10 outside\n".to_vec());
    assert_eq!(source(&files), map);
}

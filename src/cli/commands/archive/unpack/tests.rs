//! Hand-made archives, valid and invalid.

use std::fs;
use std::io::Cursor;
use std::os::unix::fs::symlink;

use bzip2::Compression;
use bzip2::write::BzEncoder;
use rperf_perfdata::FileHeader;
use rperf_testkit::Scratch;
use tar::{Builder, Header};

use super::*;
use crate::cli::symbols::own_vdso;

/// One entry: kind, path, and content or link target.
type EntrySpec<'a> = (EntryType, &'a str, &'a [u8]);

/// Builds an archive; paths are written unchecked.
fn archive(entries: &[EntrySpec<'_>]) -> Vec<u8> {
    let mut tar = Builder::new(BzEncoder::new(Vec::new(), Compression::fast()));
    for (kind, path, content) in entries {
        let mut header = Header::new_gnu();
        header.set_entry_type(*kind);
        header.set_mode(0o644);
        let name = &mut header.as_old_mut().name;
        name[..path.len()].copy_from_slice(path.as_bytes());
        if matches!(kind, EntryType::Symlink | EntryType::Link) {
            let link = &mut header.as_old_mut().linkname;
            link[..content.len()].copy_from_slice(content);
        }
        let content = if kind.is_file() { *content } else { &[] };
        header.set_size(content.len() as u64);
        header.set_cksum();
        tar.append(&header, content).unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap()
}

fn unpack(bytes: &[u8], scratch: &Scratch) -> (io::Result<()>, ArchiveSummary) {
    let (cache, here) = (scratch.path().join("cache"), scratch.path().join("here"));
    fs::create_dir_all(&cache).unwrap();
    fs::create_dir_all(&here).unwrap();
    let unpacker = ArchiveUnpacker {
        cache: &Folder::open(&cache).unwrap(),
        recording_folder: &Folder::open(&here).unwrap(),
        force: false,
    };
    let mut summary = ArchiveSummary::default();
    let result = unpacker.unpack(Cursor::new(bytes), &mut summary);
    (result, summary)
}

/// The header of a recording without records.
fn recording() -> Vec<u8> {
    let mut bytes = b"PERFILE2".to_vec();
    bytes.extend((FileHeader::SIZE as u64).to_ne_bytes());
    bytes.resize(FileHeader::SIZE, 0);
    bytes
}

/// A small file with a build-id, and the build-id.
fn program() -> (Vec<u8>, String) {
    let image = own_vdso().expect("there is a vdso");
    let id = build_id_of_elf(&image).expect("it has a build-id");
    (image.to_vec(), id.to_string())
}

#[test]
fn objects_and_recordings_are_unpacked_to_their_places() {
    let (bytes, id) = program();
    let scratch = Scratch::new();
    let (link, target) = (
        format!(".build-id/{}/{}", &id[..2], &id[2..]),
        format!("../../p/{id}"),
    );
    let (elf, hard_link) = (format!("p/{id}/elf"), format!("p/{id}/debug"));
    let inner = archive(&[
        (EntryType::Symlink, &link, target.as_bytes()),
        (EntryType::Directory, &format!("p/{id}/"), b""),
        (EntryType::Regular, &elf, &bytes),
        (EntryType::Link, &hard_link, elf.as_bytes()),
    ]);
    let with_symbols = archive(&[
        (EntryType::Regular, "dir/perf.data", &recording()),
        (EntryType::Regular, SYMBOLS_ARCHIVE, &inner),
    ]);
    for round in 0..2 {
        let (result, summary) = unpack(&with_symbols, &scratch);
        result.unwrap();
        assert_eq!(summary.object_count, 1);
        // In the second round the recording exists already.
        assert_eq!(
            (summary.recordings.len(), summary.refused.len()),
            (1 - round, round)
        );
    }
    let found = scratch.path().join("cache").join(&link);
    for name in ["elf", "debug"] {
        assert!(fs::read(found.join(name)).unwrap() == bytes);
    }
    assert_eq!(
        fs::read(scratch.path().join("here/perf.data")).unwrap(),
        recording()
    );
}

#[test]
fn invalid_members_are_refused() {
    let (bytes, id) = program();
    let (wrong, place) = ("ab".repeat(20), format!("p/{id}"));
    let victim = format!("../victim/{id}/elf");
    let outside = format!("../../../victim/{id}");
    let through = format!("way/{id}/elf");
    let (link, good) = (
        format!(".build-id/{}/{}", &id[..2], &id[2..]),
        format!("{place}/elf"),
    );
    let recording = recording();
    let hidden = format!("{place}/.bashrc");
    let (other, vdso) = (format!("p/{wrong}/debug"), format!("{place}/vdso"));
    let cases: [EntrySpec<'_>; 19] = [
        // Files that are neither recordings nor objects, or whose names are hidden or have control characters.
        (EntryType::Regular, ".perfconfig", b"[core]\n\tpager = x\n"),
        (EntryType::Regular, "home/me/.perfconfig", &recording),
        (EntryType::Regular, ".ssh/authorized_keys", b"ssh-rsa x"),
        (EntryType::Regular, "notes.txt", b"no recording"),
        (EntryType::Regular, "perf\x1b[31m.data", &recording),
        (EntryType::Regular, &hidden, &bytes),
        // A debug file with another build-id than its path, a vdso that is no object, and invalid hard links.
        (EntryType::Regular, &other, &bytes),
        (EntryType::Regular, &vdso, b"no object"),
        (EntryType::Link, &other, good.as_bytes()),
        (EntryType::Link, "perf.data", b"/etc/passwd"),
        // Paths that lead out of the directories.
        (EntryType::Regular, "../victim.data", b"x"),
        (EntryType::Regular, "/victim.data", b"x"),
        (EntryType::Regular, &victim, &bytes),
        // An ELF file with another build-id than its path, links that lead elsewhere, a path through a link, and a special file.
        (EntryType::Regular, &format!("p/{wrong}/elf"), &bytes),
        (EntryType::Symlink, &link, outside.as_bytes()),
        (EntryType::Symlink, "way", b"/etc"),
        (EntryType::Link, &good, b"../victim"),
        (EntryType::Regular, &through, &bytes),
        (EntryType::Fifo, &format!("{place}/pipe"), b""),
    ];
    let scratch = Scratch::new();
    fs::create_dir_all(scratch.path().join("cache")).unwrap();
    fs::create_dir_all(scratch.path().join("target")).unwrap();
    // The link that the path `through` goes through.
    symlink("../target", scratch.path().join("cache/way")).unwrap();
    for case in cases {
        // Valid entries after the refused one are unpacked.
        let both = archive(&[case, (EntryType::Regular, &good, &bytes)]);
        let (result, summary) = unpack(&both, &scratch);
        result.unwrap();
        assert_eq!(summary.refused.len(), 1, "{}: {summary:?}", case.1);
        let unpacked = scratch.path().join("cache").join(&good);
        assert!(unpacked.is_file(), "{}", case.1);
        fs::remove_file(unpacked).unwrap();
        let left = fs::read_dir(scratch.path().join("cache").join(&place)).unwrap();
        assert_eq!(left.count(), 0, "{}", case.1);
        let count = |name: &str| fs::read_dir(scratch.path().join(name)).unwrap().count();
        assert_eq!(count("target"), 0, "{}", case.1);
        assert_eq!(count("here"), 0, "{}", case.1);
        assert!(!scratch.path().join("victim").exists(), "{}", case.1);
    }
}

#[test]
fn a_symbols_archive_within_another_is_refused() {
    let (bytes, id) = program();
    let elf = format!("p/{id}/elf");
    let inner = archive(&[(EntryType::Regular, &elf, &bytes)]);
    let middle = archive(&[(EntryType::Regular, SYMBOLS_ARCHIVE, &inner)]);
    let scratch = Scratch::new();
    let (result, summary) = unpack(
        &archive(&[(EntryType::Regular, SYMBOLS_ARCHIVE, &middle)]),
        &scratch,
    );
    result.unwrap();
    assert_eq!(summary.refused.len(), 1, "{summary:?}");
    assert!(!scratch.path().join("cache").join(&elf).exists());
    // If `middle` is the outermost archive, `inner` is unpacked.
    assert!(unpack(&middle, &scratch).0.is_ok());
    assert!(scratch.path().join("cache").join(&elf).exists());
}

#[test]
fn long_member_names_are_errors() {
    let mut tar = Builder::new(BzEncoder::new(Vec::new(), Compression::fast()));
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::GNULongName);
    let len = 2 * MAX_HEADERS;
    header.set_size(len);
    header.set_cksum();
    tar.append(&header, io::repeat(b'a').take(len)).unwrap();
    let bytes = tar.into_inner().unwrap().finish().unwrap();
    let (result, _) = unpack(&bytes, &Scratch::new());
    assert!(
        result
            .unwrap_err()
            .to_string()
            .contains("the headers of a member are longer than")
    );
}

#[test]
fn probe_lists_are_not_unpacked() {
    let (bytes, id) = program();
    let (elf, probes) = (format!("p/{id}/elf"), format!("p/{id}/probes"));
    let scratch = Scratch::new();
    let both = archive(&[
        (EntryType::Regular, &probes, b"#x\np:sdt_x/y /bin/sh:0\n"),
        (EntryType::Regular, &elf, &bytes),
    ]);
    let (result, summary) = unpack(&both, &scratch);
    result.unwrap();
    assert_eq!(summary.refused, [""; 0]);
    let folder = scratch.path().join("cache/p").join(&id);
    assert!(folder.join("elf").exists() && !folder.join("probes").exists());
}

#[test]
fn truncated_archives_are_errors() {
    let (bytes, id) = program();
    let small = archive(&[(EntryType::Regular, "perf.data", &recording())]);
    let elf = format!("p/{id}/elf");
    let complete = archive(&[
        (EntryType::Regular, "perf.data", &recording()),
        (EntryType::Regular, &elf, &bytes),
    ]);
    let scratch = Scratch::new();
    let (result, summary) = unpack(&complete[..complete.len() - 1000], &scratch);
    assert!(result.is_err(), "{summary:?}");
    assert!(!scratch.path().join("cache").join(elf).exists());
    assert!(unpack(&small[..20], &scratch).0.is_err());
    assert!(unpack(b"no archive", &scratch).0.is_err());
}

//! Archives made by hand, good and bad.

use std::io::Cursor;

use bzip2::Compression;
use bzip2::write::BzEncoder;
use rperf_testkit::Scratch;
use tar::{Builder, Header};

use super::*;
use crate::cli::symbols::own_vdso;

/// One entry: kind, path, and content or where it leads.
type Made<'a> = (EntryType, &'a str, &'a [u8]);

/// Paths are written as they are, as no honest tool would.
fn archive(entries: &[Made<'_>]) -> Vec<u8> {
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

fn unpack(bytes: &[u8], scratch: &Scratch) -> (io::Result<()>, Unpacked) {
    let (cache, here) = (scratch.path().join("cache"), scratch.path().join("here"));
    fs::create_dir_all(&cache).unwrap();
    fs::create_dir_all(&here).unwrap();
    let unpacker = Unpacker {
        cache: &cache,
        here: &here,
        force: false,
    };
    let mut done = Unpacked::default();
    let ended = unpacker.unpack(Cursor::new(bytes), &mut done);
    (ended, done)
}

/// A small file with a build-id, and that.
fn program() -> (Vec<u8>, String) {
    let image = own_vdso().expect("there is a vdso");
    let id = build_id_of_elf(&image).expect("it has a build-id");
    (image.to_vec(), id.to_string())
}

#[test]
fn objects_and_recordings_find_their_places() {
    let (bytes, id) = program();
    let scratch = Scratch::new();
    let (link, target) = (
        format!(".build-id/{}/{}", &id[..2], &id[2..]),
        format!("../../p/{id}"),
    );
    let (elf, same) = (format!("p/{id}/elf"), format!("p/{id}/debug"));
    let inner = archive(&[
        (EntryType::Symlink, &link, target.as_bytes()),
        (EntryType::Directory, &format!("p/{id}/"), b""),
        (EntryType::Regular, &elf, &bytes),
        (EntryType::Link, &same, elf.as_bytes()),
    ]);
    let whole = archive(&[
        (EntryType::Regular, "dir/perf.data", b"data"),
        (EntryType::Regular, SYMBOLS, &inner),
    ]);
    for round in 0..2 {
        let (ended, done) = unpack(&whole, &scratch);
        ended.unwrap();
        assert_eq!(done.objects, 1);
        // The second time the recording is there already.
        assert_eq!(
            (done.recordings.len(), done.refused.len()),
            (1 - round, round)
        );
    }
    let found = scratch.path().join("cache").join(&link);
    for name in ["elf", "debug"] {
        assert!(fs::read(found.join(name)).unwrap() == bytes);
    }
    assert_eq!(
        fs::read(scratch.path().join("here/dir/perf.data")).unwrap(),
        b"data"
    );
}

#[test]
fn nothing_is_written_elsewhere() {
    let (bytes, id) = program();
    let (wrong, place) = ("ab".repeat(20), format!("p/{id}"));
    let victim = format!("../victim/{id}/elf");
    let outside = format!("../../../victim/{id}");
    let through = format!("way/{id}/elf");
    let (own, good) = (
        format!(".build-id/{}/{}", &id[..2], &id[2..]),
        format!("{place}/elf"),
    );
    let cases: [Made<'_>; 9] = [
        (EntryType::Regular, "../victim.data", b"x"),
        (EntryType::Regular, "/victim.data", b"x"),
        (EntryType::Regular, &victim, &bytes),
        (EntryType::Regular, &format!("p/{wrong}/elf"), &bytes),
        (EntryType::Symlink, &own, outside.as_bytes()),
        (EntryType::Symlink, "way", b"/etc"),
        (EntryType::Link, &format!("{place}/elf"), b"../victim"),
        (EntryType::Regular, &through, &bytes),
        (EntryType::Fifo, &format!("{place}/pipe"), b""),
    ];
    let scratch = Scratch::new();
    fs::create_dir_all(scratch.path().join("cache")).unwrap();
    fs::create_dir_all(scratch.path().join("target")).unwrap();
    symlink("../target", scratch.path().join("cache/way")).unwrap();
    for case in cases {
        // What is good behind it is taken.
        let both = archive(&[case, (EntryType::Regular, &good, &bytes)]);
        let (ended, done) = unpack(&both, &scratch);
        ended.unwrap();
        assert_eq!(done.refused.len(), 1, "{}: {done:?}", case.1);
        let good = scratch.path().join("cache").join(&good);
        assert!(good.is_file(), "{}", case.1);
        fs::remove_file(good).unwrap();
        let count = |name: &str| fs::read_dir(scratch.path().join(name)).unwrap().count();
        assert_eq!(count("target"), 0, "{}", case.1);
        assert_eq!(count("here"), 0, "{}", case.1);
        assert!(!scratch.path().join("victim").exists(), "{}", case.1);
    }
}

#[test]
fn a_cut_archive_gives_what_it_has() {
    let (bytes, id) = program();
    let first = archive(&[(EntryType::Regular, "perf.data", b"data")]);
    let second = format!("p/{id}/elf");
    let whole = archive(&[
        (EntryType::Regular, "perf.data", b"data"),
        (EntryType::Regular, &second, &bytes),
    ]);
    let scratch = Scratch::new();
    let (ended, done) = unpack(&whole[..whole.len() - 1000], &scratch);
    assert!(ended.is_err(), "{done:?}");
    assert!(!scratch.path().join("cache").join(second).exists());
    assert!(unpack(&first[..20], &scratch).0.is_err());
    assert!(unpack(b"no archive", &scratch).0.is_err());
}

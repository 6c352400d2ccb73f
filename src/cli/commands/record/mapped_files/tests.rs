use std::fs;
use std::os::unix::fs::symlink;

use rperf_testkit::Scratch;
use rperf_wire::{Mmap, RecordHeader};

use super::*;

/// `PERF_RECORD_MISC_USER`.
const USER: Misc = Misc::USER;

/// An MMAP2 record of an executable mapping of one page.
fn mapped(pid: i32, name: &str, (major, minor, inode): DeviceInode) -> Vec<u8> {
    let record = Record::Mmap2(Mmap2 {
        mmap: Mmap {
            pid,
            tid: pid.unsigned_abs(),
            start: 0x1000,
            len: 0x1000,
            pgoff: 0,
            filename: name.as_bytes(),
        },
        id: MmapId::Inode {
            major,
            minor,
            inode,
            generation: 7,
        },
        prot: PROT_EXEC,
        flags: libc::MAP_PRIVATE.cast_unsigned(),
    });
    let mut bytes = Vec::new();
    RecordHeader::encode_record(RecordKind::MMAP2, USER, &mut bytes, Endian::NATIVE, |to| {
        record.encode_body(to)
    });
    bytes
}

/// The identity of each mapping after rewriting.
fn identities(files: &mut MappedFiles, records: &[u8]) -> Vec<MmapIdentity> {
    let mut out = Vec::new();
    files.identify(records, |piece| out.extend_from_slice(piece));
    assert_eq!(out.len(), records.len(), "positions do not change");
    let all = RawRecord::all(&out, Endian::NATIVE);
    let identity = |raw: &RawRecord<'_>| match Record::decode(raw, Endian::NATIVE) {
        Ok(Record::Mmap2(Mmap2 {
            id: MmapId::BuildId { size, bytes },
            ..
        })) => MmapIdentity::Id(bytes[..size.into()].to_vec()),
        Ok(Record::Mmap2(_)) => MmapIdentity::Inode,
        _ => MmapIdentity::None,
    };
    all.map(|(raw, _)| identity(&raw)).collect()
}

#[derive(Debug, PartialEq, Eq)]
enum MmapIdentity {
    Id(Vec<u8>),
    Inode,
    None,
}

fn device_inode(path: &Path) -> DeviceInode {
    let metadata = fs::metadata(path).unwrap();
    let (major, minor) = device(metadata.dev());
    (major, minor, metadata.ino())
}

/// A copy of this program, which has a build-id, under another name.
fn program_copy(scratch: &Scratch, name: &str) -> PathBuf {
    let path = scratch.path().join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::copy("/proc/self/exe", &path).unwrap();
    path
}

fn fetched(files: &MappedFiles, id: &BuildId) -> Option<Vec<u8>> {
    let request = FileRequest {
        build_id: id,
        part: FilePart::Executable,
        // Not used by `OpenFiles`.
        object: Path::new("x"),
    };
    fs::read(files.open_files().fetch(&request)?).ok()
}

#[test]
fn a_file_is_found_below_the_root_of_its_process_and_in_map_files() {
    let scratch = Scratch::new();
    let id = build_id_of_elf(&fs::read("/proc/self/exe").unwrap());
    let Some(id) = id else {
        return rperf_testkit::skip("mapped_files", "programs have no build-ids here");
    };
    let here = program_copy(&scratch, "here");
    let inside = program_copy(&scratch, "proc/7/root/no/such/program");
    // Has the role of a removed file: no record has its path, only map_files leads to it.
    let removed = program_copy(&scratch, "gone");
    let mappings = scratch.path().join("proc/7/map_files");
    fs::create_dir_all(&mappings).unwrap();
    symlink(&removed, mappings.join("1000-2000")).unwrap();
    let mut files = MappedFiles::new(scratch.path().join("proc"));
    let name = here.to_str().unwrap();
    let records = [
        mapped(7, name, device_inode(&here)),
        mapped(7, "/no/such/program", device_inode(&inside)),
        mapped(7, "/no/such/file (deleted)", device_inode(&removed)),
        // This file is not found. A generated id would keep readers from using another file of the same name, but there is none:
        // the record keeps device and inode.
        mapped(7, "/no/such/other", (9, 9, 9)),
        mapped(7, "//anon", (0, 0, 0)),
    ];
    let expected = |id: &BuildId| MmapIdentity::Id(id.as_bytes().to_vec());
    let all = identities(&mut files, &records.concat());
    let known = [expected(&id), expected(&id), expected(&id)];
    assert_eq!(all[..3], known);
    assert_eq!(all[3..], [MmapIdentity::Inode, MmapIdentity::Inode]);
    assert_eq!(fetched(&files, &id), fs::read("/proc/self/exe").ok());
}

#[test]
fn a_generated_id_keeps_a_file_from_being_used_for_the_one_that_it_replaced() {
    let scratch = Scratch::new();
    let here = program_copy(&scratch, "here");
    let name = here.to_str().unwrap();
    let (major, minor, inode) = device_inode(&here);
    let mut files = MappedFiles::new(scratch.path().join("proc"));
    // The mapped file had another inode than the file that has its name now.
    let replaced = mapped(7, name, (major, minor, inode + 1));
    let id = generated((major, minor, inode + 1)).unwrap();
    let expected = MmapIdentity::Id(id.as_bytes().to_vec());
    assert_eq!(identities(&mut files, &replaced), [expected]);
    assert_eq!(fetched(&files, &id), None);
}

#[test]
fn an_object_without_a_build_id_gets_a_generated_id_and_stays_open() {
    let scratch = Scratch::new();
    let path = scratch.path().join("bare");
    // Only an ELF header, with the offsets and counts of program headers and sections set to 0: there are no notes.
    let mut image = fs::read("/proc/self/exe").unwrap();
    image.truncate(64);
    image[32..48].fill(0);
    image[56..64].fill(0);
    fs::write(&path, &image).unwrap();
    let text = scratch.path().join("text");
    fs::write(&text, "no code").unwrap();
    let mut files = MappedFiles::new(scratch.path().join("proc"));
    let records = [
        mapped(7, path.to_str().unwrap(), device_inode(&path)),
        mapped(7, text.to_str().unwrap(), device_inode(&text)),
    ];
    let id = generated(device_inode(&path)).unwrap();
    let expected = [
        MmapIdentity::Id(id.as_bytes().to_vec()),
        MmapIdentity::Inode,
    ];
    assert_eq!(identities(&mut files, &records.concat()), expected);
    fs::remove_file(&path).unwrap();
    assert_eq!(fetched(&files, &id), Some(image));
}

#[test]
fn device_is_the_inverse_of_makedev() {
    for (major, minor) in [(0xfe, 1), (0, 0x27), (0x12345, 0x6789a)] {
        let (wide_major, wide_minor) = (u64::from(major), u64::from(minor));
        // The layout of glibc's makedev.
        let major_bits = (wide_major & 0xfff) << 8 | (wide_major & !0xfff) << 32;
        let minor_bits = wide_minor & 0xff | (wide_minor & !0xff) << 12;
        assert_eq!(device(major_bits | minor_bits), (major, minor));
    }
}

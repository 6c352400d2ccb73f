//! Archives of objects and recordings, for `archive --unpack`.

use std::io::Write as _;

use bzip2::Compression;
use bzip2::write::BzEncoder;
use rperf_testkit::Bytes;

use crate::case::{Case, CaseInputs};
use crate::elf;
use crate::mutate::{self, Field};
use crate::names;
use crate::random::Random;

const BLOCK: usize = 512;
/// Types of entries (tar(5)), the frequent ones repeated: files, links, devices, folders, FIFOs, and extensions.
const KINDS: &[u8] = b"0000001122345567LKgxXSD\0";
const REGULAR_FILE: u8 = b'0';
const HARD_LINK: u8 = b'1';
const SYMBOLIC_LINK: u8 = b'2';
const FOLDER: u8 = b'5';

/// An entry of a tar file.
#[derive(Debug, Clone)]
struct Entry {
    name: Vec<u8>,
    /// The target of a link; empty for other entries.
    target: Vec<u8>,
    kind: u8,
    content: Vec<u8>,
}

impl Entry {
    fn new(kind: u8, name: &str, content: &[u8]) -> Self {
        Self {
            name: name.into(),
            target: Vec::new(),
            kind,
            content: content.to_vec(),
        }
    }

    /// The header block (tar(5)), with `size` as the size of the content.
    fn header(&self, size: u64) -> Vec<u8> {
        let padded = |text: &[u8], room: usize| {
            let mut padded = text[..text.len().min(room)].to_vec();
            padded.resize(room, 0);
            padded
        };
        let octal = |value: u64, room: usize| {
            padded(
                format!("{value:0width$o}", width = room - 1).as_bytes(),
                room,
            )
        };
        // Name, mode, user and group.
        let header = Bytes::new()
            .raw(padded(&self.name, 100))
            .raw(octal(0o644, 8))
            .raw(octal(0, 8))
            .raw(octal(0, 8));
        // Size, time, checksum and type.
        let header = header
            .raw(octal(size, 12))
            .raw(octal(0, 12))
            .raw(b"        ")
            .raw([self.kind]);
        // Target of a link, magic number and version, names of user and group, and the device numbers of /dev/null.
        let header = header
            .raw(padded(&self.target, 100))
            .raw(b"ustar\x0000")
            .raw([0; 64])
            .raw(octal(1, 8))
            .raw(octal(3, 8));
        // Prefix of the name, and padding.
        let mut header = header.raw([0; 155 + 12]).done();
        write_checksum(&mut header);
        header
    }
}

fn write_checksum(header: &mut [u8]) {
    header[148..156].fill(b' ');
    let sum: u32 = header[..BLOCK].iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
}

/// A tar file of the entries. A few of its headers have a wrong size or damaged bytes.
fn tar(entries: &[Entry], random: &mut Random) -> Vec<u8> {
    let mut out = Vec::new();
    for entry in entries {
        // The last number is the largest that the field can hold in octal.
        let size = match random.one_in(15) {
            true => *random.pick(&[0, 1, 511, 513, 1 << 20, (1 << 32) - 1, 0o77_777_777_777]),
            false => entry.content.len() as u64,
        };
        let mut header = entry.header(size);
        if random.one_in(15) {
            // Sizes in base 256: -1, and 2^32 - 1.
            const SIZES: [[u8; 12]; 2] = [
                [0xff; 12],
                [0x80, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff],
            ];
            header[124..136].copy_from_slice(&SIZES[random.below(2)]);
            write_checksum(&mut header);
        }
        if random.one_in(15) {
            mutate::bytes(&mut header, b"", random);
            header.resize(BLOCK, 0);
            if random.one_in(2) {
                write_checksum(&mut header);
            }
        }
        out.extend(header);
        out.extend(&entry.content);
        out.resize(out.len().next_multiple_of(BLOCK), 0);
    }
    out.resize(out.len() + random.below(3) * BLOCK, 0);
    out
}

fn compress(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = BzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("memory can be written");
    encoder.finish().expect("memory can be written")
}

/// A build-id that no object has.
const ID: &str = "1234567890123456789012345678901234567890";

/// The entries of a valid archive.
fn entries(inputs: &CaseInputs<'_>) -> Vec<Entry> {
    let object = inputs
        .seeds
        .object("plain")
        .map_or(&b"no object"[..], |seed| &seed.bytes);
    let id = elf::build_id(object).unwrap_or_else(|| ID.to_owned());
    let mut link = Entry::new(
        SYMBOLIC_LINK,
        &format!(".build-id/{}/{}", &id[..2], &id[2..]),
        b"",
    );
    link.target = format!("../../usr/bin/program/{id}").into_bytes();
    let recording = &inputs.seeds.recordings[0].bytes;
    vec![
        link,
        Entry::new(FOLDER, &format!("usr/bin/program/{id}/"), b""),
        Entry::new(REGULAR_FILE, &format!("usr/bin/program/{id}/elf"), object),
        Entry::new(
            REGULAR_FILE,
            &format!("usr/bin/program/{id}/probes"),
            b"p:probe/x /program:0x10\n",
        ),
        Entry::new(
            REGULAR_FILE,
            &format!("[kernel.kallsyms]/{ID}/kallsyms"),
            b"ffffffff81000000 T _text\n",
        ),
        Entry::new(REGULAR_FILE, "perf.data", recording),
    ]
}

/// A path out of the working directory, below the regular file `perf.data`, or of a file that rperf reads (a configuration, a
/// cached object, a nested archive); or any hostile name.
/// [`names::TAG`] is the name of files that no run may create.
fn replacement_path(inputs: &mut CaseInputs<'_>) -> Vec<u8> {
    let outside = inputs.sandbox.working_directory().with_file_name("outside");
    let random = &mut *inputs.random;
    match random.below(8) {
        0 => format!("{}/new", outside.display()).into_bytes(),
        1 => format!("usr/../../outside/{}", names::TAG).into_bytes(),
        2 => b"perf.data/inside".to_vec(),
        3 => b".perfconfig".to_vec(),
        4 => format!("a/{ID}/elf").into_bytes(),
        5 => b"perf.symbols.tar.bz2".to_vec(),
        _ => names::hostile(random),
    }
}

/// An archive whose entries may lead out of the working directory, have unusual types or wrong sizes; sometimes a damaged one.
pub(crate) fn unpacked(inputs: &mut CaseInputs<'_>) -> Case {
    let line = *inputs.random.pick(&[
        "archive --unpack hostile.tar.bz2",
        "archive --unpack",
        "archive -f --unpack hostile.tar.bz2",
    ]);
    let mut case = Case::new("archive", line);
    let mut all = entries(inputs);
    for _ in 0..inputs.random.below(4) {
        let (at, from) = (
            inputs.random.below(all.len()),
            inputs.random.below(all.len()),
        );
        match inputs.random.below(7) {
            0 => all[at].name = replacement_path(inputs),
            1 => all[at].target = replacement_path(inputs),
            2 => all[at].kind = *inputs.random.pick(KINDS),
            3 => all.insert(at, all[from].clone()),
            4 => all.swap(at, from),
            5 => add_link(&mut all, inputs),
            _ => add_nested_archive(&mut all, inputs.random),
        }
    }
    let random = &mut *inputs.random;
    let mut bytes = compress(&tar(&all, random));
    match random.below(12) {
        0 => {
            mutate::truncate(&mut bytes, random);
            case.must_report_error = Some("an early end");
        }
        1 => mutate::bytes(&mut bytes, b"BZh9", random),
        // The magic number and the block size of bzip2.
        2 => Field::new(0, 4).corrupt(&mut bytes, random),
        3 => bytes.extend(compress(&tar(&all, random))),
        4 => bytes = bomb(random),
        _ => {}
    }
    inputs.sandbox.write("hostile.tar.bz2", bytes);
    if inputs.random.one_in(4) {
        inputs.sandbox.write("perf.data", "there already\n");
    }
    case
}

/// Adds a link to a place outside of the working directory, and after it a file below the link or with the link's name.
fn add_link(all: &mut Vec<Entry>, inputs: &mut CaseInputs<'_>) {
    let outside = inputs
        .sandbox
        .working_directory()
        .with_file_name("outside")
        .display()
        .to_string();
    let random = &mut *inputs.random;
    let targets = [
        outside.clone(),
        format!("{outside}/keep"),
        names::OUTSIDE.to_owned(),
        "../../../../outside".to_owned(),
        names::FIFO.to_owned(),
    ];
    let place = *random.pick(&[
        "way",
        "usr",
        ".build-id",
        "perf.data",
        "usr/bin/program",
        "home",
    ]);
    let mut link = Entry::new(*random.pick(&[HARD_LINK, SYMBOLIC_LINK]), place, b"");
    link.target = random.pick(&targets).clone().into_bytes();
    let suffix = *random.pick(&["", "/keep", "/new", "/folder/inner"]);
    let at = random.below(all.len());
    // The link is inserted last, so that it comes first.
    all.insert(
        at,
        Entry::new(
            REGULAR_FILE,
            &format!("{place}{suffix}"),
            b"written through a link\n",
        ),
    );
    all.insert(at, link);
}

/// Adds an archive of the entries so far, nested in up to five further archives.
fn add_nested_archive(all: &mut Vec<Entry>, random: &mut Random) {
    let mut inner = tar(all, random);
    for _ in 0..random.below(6) {
        inner = tar(
            &[Entry::new(
                REGULAR_FILE,
                "perf.symbols.tar.bz2",
                &compress(&inner),
            )],
            random,
        );
    }
    all.push(Entry::new(
        REGULAR_FILE,
        "perf.symbols.tar.bz2",
        &compress(&inner),
    ));
}

/// A decompression bomb: a small archive of 256 KiB to 4 MiB of zeros.
fn bomb(random: &mut Random) -> Vec<u8> {
    let mut entry = Entry::new(REGULAR_FILE, "perf.data", b"");
    entry.content = vec![0; 1 << (18 + random.below(5))];
    compress(&tar(&[entry], random))
}

//! Files written byte by byte, in both versions and byte orders.

use std::io::Cursor;

use rperf_perfdata::PerfData;
use rperf_wire::{Encoder, Record, RecordKind, SampleLayout};

use super::*;

const PAGE: usize = 4096;
const HEADER_PAGE: &[u8] = b"\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";
/// The fields that begin every event.
const COMMON: &str = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";
/// Id of the event `test:tick`.
const TICK: u16 = 300;
/// Id of the event `kernel_stack`.
const STACK: u16 = 4;
const KALLSYMS: &[u8] =
    b"ffffffff81000000 T _text\nffffffff81000100 T tick\nffffffff82000000 T _etext\n";

/// The format file of an event.
fn format(name: &str, id: u16, fields: &str) -> Vec<u8> {
    format!(
        "name: {name}\nID: {id}\nformat:\n{COMMON}{fields}\nprint fmt: \"value=%d\", REC->value\n"
    )
    .into_bytes()
}

/// Bytes in one byte order.
struct Bytes(Endian, Vec<u8>);

impl Bytes {
    fn new(endian: Endian) -> Self {
        Self(endian, Vec::new())
    }

    fn encoder(&mut self) -> Encoder<'_> {
        Encoder::new(&mut self.1, self.0)
    }

    fn u16(mut self, value: u16) -> Self {
        self.encoder().u16(value);
        self
    }

    fn u32(mut self, value: u32) -> Self {
        self.encoder().u32(value);
        self
    }

    fn u64(mut self, value: u64) -> Self {
        self.encoder().u64(value);
        self
    }

    fn raw(mut self, bytes: &[u8]) -> Self {
        self.1.extend_from_slice(bytes);
        self
    }
}

/// Header word of a ring buffer entry, by `type_len`:
/// - 1 to 28: an event; the number of 32-bit words of its data.
/// - 0: an event; the next word has the length of the data in bytes, plus 4 for this word.
/// - 29: padding; the next word has its length, as for 0. If `delta` is 0, there is none: the rest of the page is padding.
/// - 30 (extended time): a time difference; 31: an absolute time. `delta` has the lower 27 bits, the next word the upper ones.
fn entry(endian: Endian, type_len: u32, delta: u32) -> u32 {
    match endian {
        Endian::Little => type_len | delta << 5,
        Endian::Big => type_len << 27 | delta,
    }
}

/// The data of the event `test:tick`: the common fields and `value`.
fn tick(endian: Endian, pid: u32, value: u32) -> Vec<u8> {
    let data = Bytes::new(endian).u16(TICK).u16(0);
    data.u32(pid).u32(value).1
}

/// A page with these entries, and `flags` in its commit.
fn page(endian: Endian, time: u64, flags: u64, entries: &[u8]) -> Vec<u8> {
    let header = Bytes::new(endian)
        .u64(time)
        .u64(flags | entries.len() as u64);
    let mut page = header.raw(entries).1;
    page.resize(PAGE, 0);
    page
}

/// Two pages of CPU 0, and one of CPU 1.
fn pages(endian: Endian) -> [Vec<u8>; 2] {
    let bytes = || Bytes::new(endian);
    let word = |type_len, delta| entry(endian, type_len, delta);
    let first = bytes()
        .u32(word(3, 0))
        .raw(&tick(endian, 7, 1))
        // An extended time, and an event whose length is in a word.
        .u32(word(30, 5))
        .u32(1)
        .u32(word(0, 10))
        .u32(16)
        .raw(&tick(endian, 7, 2))
        // A discarded entry, and an absolute time.
        .u32(word(29, 1))
        .u32(12)
        .raw(&[0xff; 8])
        .u32(word(31, 900))
        .u32(2)
        .u32(word(3, 0))
        .raw(&tick(endian, 7, 3))
        // Padding to the end of the page.
        .u32(word(29, 0))
        .1;
    // A `kernel_stack`, the callchain of the event before it: the common fields with a pid, which is not read, the number of
    // addresses, 4 bytes of padding, and the addresses.
    let stack = bytes().u16(STACK).u16(0).u32(7).u32(2).u32(0);
    let stack = stack
        .u64(0xffff_ffff_8100_0110)
        .u64(0xffff_ffff_8100_0200)
        .1;
    let other_cpu = bytes().u32(word(3, 50)).raw(&tick(endian, 8, 4));
    let other_cpu = other_cpu.u32(word(8, 0)).raw(&stack).1;
    let last = bytes().u32(word(3, 0)).raw(&tick(endian, 7, 5)).1;
    // The flags of the commit tell that events were lost before the page, and that their number follows the page's 16 bytes of
    // events.
    let mut second = page(endian, 1 << 29, 1 << 31 | 1 << 30, &last);
    let count = bytes().u64(12).1;
    second[16 + 16..16 + 24].copy_from_slice(&count);
    [
        [page(endian, 1000, 0, &first), second].concat(),
        page(endian, 1000, 0, &other_cpu),
    ]
}

/// The contents of the sections with descriptions, in the order of `sections::DESCRIPTIONS`.
fn descriptions(endian: Endian) -> [Vec<u8>; 6] {
    let bytes = || Bytes::new(endian);
    let text = |text: &[u8]| bytes().u64(text.len() as u64).raw(text).1;
    // `tick` and `stack` are the descriptions of the events' own fields.
    let tick = "\tfield:int value;\toffset:8;\tsize:4;\tsigned:1;\n";
    let stack = "\tfield:int size;\toffset:8;\tsize:4;\tsigned:1;\n\tfield:unsigned long caller[8];\toffset:16;\tsize:64;\tsigned:0;\n";
    let headers = bytes().raw(b"header_page\0").raw(&text(HEADER_PAGE));
    let headers = headers.raw(b"header_event\0").raw(&text(b"event"));
    let events = bytes().u32(1).raw(b"test\0").u32(1);
    [
        headers.1,
        // The formats of ftrace itself.
        bytes()
            .u32(1)
            .raw(&text(&format("kernel_stack", STACK, stack)))
            .1,
        // The formats of one system.
        events.raw(&text(&format("tick", TICK, tick))).1,
        bytes().u32(KALLSYMS.len() as u32).raw(KALLSYMS).1,
        // No formats of `trace_printk`.
        bytes().u32(0).1,
        // The names of tasks.
        text(b"7 sh\n8 tick worker\n"),
    ]
}

/// The beginning of a file of either version.
fn start(endian: Endian, version: &str) -> Bytes {
    let order = u8::from(endian == Endian::Big);
    let bytes = Bytes::new(endian).raw(MAGIC).raw(version.as_bytes());
    // The end of the version, the byte order, and the bytes of a long.
    bytes.raw(&[0, order, 8]).u32(PAGE as u32)
}

const UNAME: &[u8] = b"Linux guest 6.1.0 #1 SMP Debian x86_64\0";

fn version_6(endian: Endian) -> Vec<u8> {
    let mut file = start(endian, "6").raw(&descriptions(endian).concat());
    // Two CPUs.
    file = file.u32(2).raw(b"options  \0");
    file = file.u16(options::UNAME).u32(UNAME.len() as u32).raw(UNAME);
    file = file.u16(options::TRACECLOCK).u32(0);
    file = file.u16(options::DONE).raw(b"flyrecord\0");
    let clock = b"local [mono] boot\0";
    // What precedes the pages: an offset and a size for each of the two CPUs, then the size of the clock's text, and that text.
    let end = file.1.len() + 2 * 16 + 8 + clock.len();
    let pages_at = end.next_multiple_of(PAGE);
    let pages = pages(endian);
    file = file.u64(pages_at as u64).u64(pages[0].len() as u64);
    file = file
        .u64((pages_at + pages[0].len()) as u64)
        .u64(pages[1].len() as u64);
    file = file.u64(clock.len() as u64).raw(clock);
    file.1.resize(pages_at, 0);
    file.raw(&pages.concat()).1
}

/// A file of version 7; unless `compression` is "none", its sections and pages are compressed by `pack`. It also has an instance
/// `other` without CPUs, of which only the name is read.
fn version_7(endian: Endian, compression: &str, pack: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let is_packed = compression != "none";
    let bytes = || Bytes::new(endian);
    let packed = |content: &[u8]| {
        let data = pack(content);
        let sizes = bytes().u32(data.len() as u32).u32(content.len() as u32);
        sizes.raw(&data).1
    };
    let section = |id: u16, content: &[u8]| {
        let content = if is_packed {
            packed(content)
        } else {
            content.to_vec()
        };
        let header = bytes().u16(id).u16(is_packed.into()).u32(0);
        header.u64(content.len() as u64).raw(&content).1
    };
    // The compression, a NUL, and its version.
    let mut file = start(endian, "7")
        .raw(compression.as_bytes())
        .raw(b"\x001\0");
    // The offset of the options is not known yet; it is written at the end.
    let offset_at = file.1.len();
    file = file.u64(0);
    let uname = bytes().u16(options::UNAME).u32(UNAME.len() as u32);
    let mut options = uname.raw(UNAME);
    // The ids in `sections::DESCRIPTIONS` count up from 16.
    for (id, content) in (16..).zip(descriptions(endian)) {
        options = options.u16(id).u32(8).u64(file.1.len() as u64);
        file = file.raw(&section(id, &content));
    }
    let mut table = Vec::new();
    for (cpu, pages) in (0..).zip(pages(endian)) {
        let data = match is_packed {
            true => bytes().u32(1).raw(&packed(&pages)).1,
            false => pages,
        };
        let place = bytes().u32(cpu).u64(file.1.len() as u64);
        // The size does not include the count of chunks.
        let size = data.len() - if is_packed { 4 } else { 0 };
        table.extend(place.u64(size as u64).1);
        file = file.raw(&data);
    }
    // An offset that is not read, the name (empty: the top instance), and the clock.
    let mut buffer = bytes().u64(1).raw(b"\0mono\0");
    if endian == Endian::Little {
        // The size of a page, which trace-cmd 3.1.6 writes before the count of CPUs. The big-endian file tests its absence.
        buffer = buffer.u32(PAGE as u32);
    }
    let buffer = buffer.u32(2).raw(&table).1;
    options = options.u16(options::BUFFER).u32(buffer.len() as u32);
    options = options.raw(&buffer);
    let instance = bytes().u64(1).raw(b"other\0mono\0").u32(0).1;
    options = options.u16(options::BUFFER).u32(instance.len() as u32);
    options = options.raw(&instance).u16(options::DONE).u32(8).u64(0);
    let options_offset = bytes().u64(file.1.len() as u64).1;
    file.1[offset_at..offset_at + 8].copy_from_slice(&options_offset);
    file.raw(&section(options::DONE, &options.1)).1
}

/// The records of the converted perf.data, a line for each.
fn records(file: &[u8]) -> Vec<String> {
    let trace = TraceDat::parse(file).expect("a trace.dat");
    let mut output = Cursor::new(Vec::new());
    let written = trace
        .write(&mut output, &["rperf".to_owned()])
        .expect("a trace");
    let bytes = output.into_inner();
    assert_eq!(written.bytes, bytes.len() as u64);
    let data = PerfData::parse(&bytes).expect("a recording");
    assert_eq!(data.features().hostname().as_deref(), Some("guest"));
    assert_eq!(data.features().arch().as_deref(), Some("x86_64"));
    let event = &data.events()[0];
    assert_eq!((&*event.name, data.events().len()), ("test:tick", 1));
    let formats = data.metadata().formats().expect("formats");
    let tracepoint = formats.of_event(&event.attr).expect("described");
    let value = tracepoint.reader("value").expect("a field");
    let layout = SampleLayout::new(&event.attr);
    let mut lines = Vec::new();
    for record in data.records() {
        let raw = record.expect("a record").raw;
        if raw.kind == RecordKind::SAMPLE {
            let sample = layout.decode(raw.body, data.endian()).expect("a sample");
            let chain: Vec<String> = sample
                .callchain
                .expect("a chain")
                .iter()
                .map(|ip| format!("{ip:x}"))
                .collect();
            lines.push(format!(
                "{:?} cpu {:?} {:?} value {:?} {}",
                sample.time.expect("a time"),
                sample.cpu.expect("a CPU"),
                sample.pid_tid.expect("a task"),
                value.i64(sample.raw.expect("data")).expect("a number"),
                chain.join(" ")
            ));
            continue;
        }
        lines.push(
            match Record::decode(&raw, data.endian()).expect("a record") {
                Record::Comm(comm) => {
                    format!("comm {} {}", comm.tid, String::from_utf8_lossy(comm.comm))
                }
                Record::Lost(lost) => format!("lost {}", lost.lost),
                Record::Mmap(mmap) => format!("map {:x} {:x}", mmap.start, mmap.len),
                other => format!("{other:?}"),
            },
        );
    }
    lines
}

/// The `kernel_stack` of CPU 1 is no sample of its own, but the callchain of the event before it, after `PERF_CONTEXT_KERNEL`
/// (`ffffffffffffff80`).
#[test]
fn both_versions_become_the_same_samples() {
    let absolute = (2_u64 << 27) + 900;
    let expected = [
        "map ffffffff81000000 1000000".to_owned(),
        "comm 7 sh".to_owned(),
        "comm 8 tick worker".to_owned(),
        "1000 cpu 0 (7, 7) value 1 ".to_owned(),
        "1050 cpu 1 (8, 8) value 4 ffffffffffffff80 ffffffff81000110 ffffffff81000200".to_owned(),
        format!("{} cpu 0 (7, 7) value 2 ", 1000 + (1 << 27) + 5 + 10),
        format!("{absolute} cpu 0 (7, 7) value 3 "),
        "lost 12".to_owned(),
        format!("{} cpu 0 (7, 7) value 5 ", 1 << 29),
    ];
    for endian in [Endian::Little, Endian::Big] {
        assert_eq!(records(&version_6(endian)), expected, "{endian:?}");
        let plain = version_7(endian, "none", <[u8]>::to_vec);
        assert_eq!(records(&plain), expected, "{endian:?}");
    }
    let zstd = version_7(Endian::Little, "zstd", |bytes| {
        ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest)
    });
    assert_eq!(records(&zstd), expected);
    let zlib = version_7(Endian::Little, "zlib", |bytes| {
        let mut out = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut out, bytes).expect("memory");
        out.finish().expect("memory")
    });
    assert_eq!(records(&zlib), expected);
    let trace = TraceDat::parse(&zlib).expect("a trace.dat");
    assert_eq!(trace.instances(), ["other"]);
}

#[test]
fn truncated_files_are_errors() {
    for file in [
        version_6(Endian::Little),
        version_7(Endian::Big, "none", <[u8]>::to_vec),
    ] {
        // Not every length, to save time.
        for length in (0..file.len()).step_by(17) {
            let truncated = &file[..length];
            let parsed = TraceDat::parse(truncated);
            let written = parsed.and_then(|trace| trace.write(&mut Cursor::new(Vec::new()), &[]));
            let error = written.expect_err("truncated").to_string();
            assert!(
                error.contains("offset 0x")
                    || error.starts_with("not a trace.dat")
                    // `Error::Formats`: the formats that are left cannot be parsed.
                    || error == "descriptions of events",
                "{length}: {error}"
            );
        }
    }
}

#[test]
fn refusals_name_their_cause() {
    let error = |file: &[u8]| {
        let parsed = TraceDat::parse(file);
        let written = parsed.and_then(|trace| trace.write(&mut Cursor::new(Vec::new()), &[]));
        written.expect_err("refused").to_string()
    };
    let mut file = version_6(Endian::Little);
    file[10] = b'8';
    assert_eq!(
        error(&file),
        "trace.dat version 8 at offset 10: only 6 and 7 are supported"
    );
    let mut file = version_7(Endian::Little, "none", <[u8]>::to_vec);
    let clock = file
        .windows(6)
        .position(|text| text == b"\0mono\0")
        .expect("the clock");
    file[clock + 1..clock + 5].copy_from_slice(b"uptm");
    assert_eq!(
        error(&file),
        "times are from the clock 'uptm', which does not count nanoseconds"
    );
    // An event without a description: the first one of CPU 1, whose page is the file's last.
    let mut file = version_6(Endian::Little);
    // The low byte of its id follows the page's header (16 bytes) and the entry's header word: `TICK`, 0x12c, becomes 0x1ee, 494.
    let id_at = file.len() - PAGE + 16 + 4;
    file[id_at] = 0xee;
    assert!(
        error(&file).contains("the event with the number 494 has no description"),
        "{}",
        error(&file)
    );
    // A commit with more bytes of events than fit into the page.
    let mut file = version_6(Endian::Little);
    let commit = file.len() - PAGE + 8;
    file[commit + 1] = 0xff;
    assert!(
        error(&file).contains("bytes of events do not fit into the page"),
        "{}",
        error(&file)
    );
}

//! Lines, fields of tracepoints, and complete texts.

use std::io::Cursor;

use proptest::prelude::*;
use rperf_perfdata::PerfData;
use rperf_tracepoint::{Abi, NoSymbols, PrintContext, PrintkFormats, Tracepoint};
use rperf_wire::{Endian, Record, RecordKind, SampleLayout};

use super::frame::TextFrame;
use super::parse::{Items, TextItem, TextSample};
use super::tracepoint::FieldPattern;
use super::*;

fn samples(text: &str) -> Vec<TextSample<'_>> {
    let items = Items::new(text).map(|item| item.expect("a line"));
    let samples = items.filter_map(|item| match item {
        TextItem::Sample(sample) => Some(sample),
        _ => None,
    });
    samples.collect()
}

fn sample(text: &str) -> TextSample<'_> {
    samples(text).pop().expect("a sample")
}

#[test]
fn lines_of_both_perf_versions_are_parsed() {
    // perf 6.1 and 7.2 pad ids in different ways; comms have blanks, colons and brackets.
    for (line, comm, tid, cpu, time, period, event, fields) in [
        (
            "            sh   126 [001]    11.634297: sched:sched_wakeup: comm=a b pid=7",
            "sh",
            126,
            Some(1),
            11_634_297_000,
            None,
            "sched:sched_wakeup",
            Some("comm=a b pid=7"),
        ),
        (
            "load   28391  1164.612070123:    2004008 cpu-clock:u:      559e970d314a leaf+0x11 (/tmp/load)",
            "load",
            28391,
            None,
            1_164_612_070_123,
            Some(2_004_008),
            "cpu-clock:u",
            None,
        ),
        (
            "Web: Content [x] 7/8 [012] 3.000001: cycles: 10 f (a)",
            "Web: Content [x]",
            8,
            Some(12),
            3_000_001_000,
            None,
            "cycles",
            None,
        ),
        (
            "sh 7 1.000000: cycles:uX: 401000 main+0x10 (/bin/sh)",
            "sh",
            7,
            None,
            1_000_000_000,
            None,
            "cycles:uX",
            None,
        ),
        (
            ":-1    -1 [000] 0.000000: 1 probe_a:b__return:",
            ":-1",
            u32::MAX,
            Some(0),
            0,
            Some(1),
            "probe_a:b__return",
            None,
        ),
    ] {
        let head = sample(line).head;
        assert_eq!(
            (head.comm, head.tid, head.cpu, head.time),
            (comm, tid, cpu, time),
            "{line}"
        );
        assert_eq!(
            (head.period, head.event, head.fields),
            (period, event, fields)
        );
    }
}

#[test]
fn frames_are_parsed() {
    let frame = |text| {
        let frame = TextFrame::parse(text).expect("a frame");
        (frame.symbol, frame.offset, frame.object)
    };
    for (text, expected) in [
        (
            "\t    114a leaf+0x11 (/tmp/load)",
            (Some("leaf"), Some(0x11), Some("/tmp/load")),
        ),
        (
            "114a operator new(unsigned long)+0x18 (/usr/lib/a (deleted))",
            (
                Some("operator new(unsigned long)"),
                Some(0x18),
                Some("/usr/lib/a (deleted)"),
            ),
        ),
        ("114a [unknown] ([unknown])", (None, None, None)),
        ("114a f (inlined)", (Some("f"), None, None)),
        ("114a f", (Some("f"), None, None)),
        ("114a", (None, None, None)),
    ] {
        assert_eq!(frame(text), expected, "{text}");
    }
    for text in [
        "",
        "leaf (a)",
        "0x114a leaf (a)",
        "114a leaf (/tmp/lo",
        "1)",
    ] {
        assert_eq!(TextFrame::parse(text), None, "{text}");
    }
}

/// Derives a tracepoint's format from `texts`, encodes each text as raw data, and prints the data with the format. Returns the
/// format and the printed texts.
fn printed(event: &str, texts: &[&str]) -> (String, Vec<String>) {
    let mut pattern = FieldPattern::new(event);
    texts.iter().for_each(|text| pattern.add(text));
    let (system, name) = event.split_once(':').expect("a tracepoint");
    let (id, tid) = (7, 3);
    let tracepoint = pattern.tracepoint(name, id);
    let abi = Abi {
        endian: Endian::Little,
        long_size: 8,
    };
    let parsed = Tracepoint::parse(system, tracepoint.format.as_bytes(), abi);
    let parsed = parsed.unwrap_or_else(|error| panic!("{error}: {}", tracepoint.format));
    let context = PrintContext {
        symbols: &NoSymbols,
        printk: &PrintkFormats::default(),
    };
    let print = |text: &&str| {
        let mut out = Vec::new();
        let data = tracepoint.data(tid, text);
        parsed.print_fmt().write(&data, &context, &mut out);
        String::from_utf8(out).expect("text")
    };
    (tracepoint.format.clone(), texts.iter().map(print).collect())
}

#[test]
fn tracepoints_print_the_texts_that_they_were_made_of() {
    for (event, texts, field) in [
        (
            "sched:sched_switch",
            &[
                "prev_comm=sh prev_pid=126 prev_prio=120 prev_state=S ==> next_comm=opt cgu.12 next_pid=0 next_prio=120",
                "prev_comm=a b prev_pid=1 prev_prio=0 prev_state=R+ ==> next_comm=sh next_pid=126 next_prio=-1",
            ][..],
            "field:long prev_state;",
        ),
        (
            "sched:sched_wakeup",
            &[
                "comm=migration/0 pid=18 prio=0 target_cpu=000",
                "comm=x pid=5 prio=1 target_cpu=012",
            ],
            "field:char comm[16];",
        ),
        (
            "sched:sched_stat_runtime",
            &["comm=x pid=5 runtime=12 [ns] vruntime=99999999999 [ns]"],
            "field:s64 vruntime;",
        ),
        ("a:hex", &["ptr=0xffff0 v=0x0"], "field:u64 ptr;"),
        (
            "a:text",
            &["NR 0 (3, 7f)", "NR 1 (\"a\\b\", 100%)"],
            "__data_loc char[] text;",
        ),
        // These become fields of text: numbers that would be printed in another way, keys that differ or occur twice, different
        // texts after numbers, and a text without keys.
        ("a:odd", &["n=+5 m=007", "n=5 m=08"], "__data_loc char[] n;"),
        ("a:other", &["n=5", "m=5"], "__data_loc char[] text;"),
        ("a:twice", &["n=5 n=6"], "__data_loc char[] text;"),
        (
            "a:text2",
            &["text=5 is", "text=6 100%"],
            "__data_loc char[] text;",
        ),
        ("a:empty", &["", "x=1"], "__data_loc char[] text;"),
    ] {
        let (format, reprinted) = printed(event, texts);
        assert_eq!(reprinted, texts, "{format}");
        assert!(format.contains(field), "{format}");
    }
}

#[test]
fn broken_lines_are_named_with_their_offset() {
    let start = "sh 1 [000] 1.000001: a:b: x=1\n";
    for (line, problem) in [
        ("sh 1 [000] 1.0001: a:b: x=1", "not a sample"),
        ("sh 1 [000] 1.000001: a:b", "no event"),
        ("sh 1 [000] 1.000001: 5 cycles: leaf", "no code address"),
        // Without the fields that the sample on the first line has.
        ("sh 1 [000] 1.000001: 5 a:b:", "samples of this event"),
        (
            "sh 1 [000] 1.000001: 5 mem: 7f 42 |OP LOAD|LVL L1 hit| 10 f (a)",
            "memory accesses",
        ),
        ("\tleaf+0x1 (/bin/sh)", "not a frame"),
        ("\n\t1000 leaf+0x1 (/bin/sh)", "a frame without a sample"),
    ] {
        let text = format!("{start}{line}\n");
        let error = ScriptText::new(text.as_bytes()).write(Cursor::new(Vec::new()), &[]);
        let error = error.expect_err("broken").to_string();
        let (number, offset) = match line.starts_with('\n') {
            true => (3, start.len() + 1),
            false => (2, start.len()),
        };
        let expected = format!("line {number} at offset {offset:#x}: {problem}");
        assert!(error.starts_with(&expected), "{error} is not {expected}");
    }
    let empty = ScriptText::new(b"# hostname : x\n\n").write(Cursor::new(Vec::new()), &[]);
    assert_eq!(
        empty.expect_err("empty").to_string(),
        "the text has no samples"
    );
}

/// Converts a text; returns the perf.data and the result.
fn written(text: &str) -> (Vec<u8>, ImportedText) {
    let mut out = Cursor::new(Vec::new());
    let imported = ScriptText::new(text.as_bytes()).write(&mut out, &[]);
    (out.into_inner(), imported.expect("it is written"))
}

#[test]
fn callchains_lead_to_functions() {
    // Frames in /a and /b with overlapping offsets, which perf 6.1 prints instead of addresses; a frame in /c with an address;
    // and an address of the kernel.
    let text = "# hostname : there\n# arch : aarch64\n\
        a 7 1.000001: 5 cycles: \n\tffffffff81000110 sys+0x10 ([kernel.kallsyms])\n\t1010 f+0x10 (/a)\n\t1020 g+0x10 (/b)\n\n\
        a 7 1.000002: 5 cycles: \n\t7fff00001010 h+0x10 (/c)\n\n";
    let (file, imported) = written(text);
    let data = PerfData::parse(&file).expect("a perf.data");
    assert_eq!(data.features().hostname().as_deref(), Some("there"));
    assert_eq!(data.features().arch().as_deref(), Some("aarch64"));
    let layout = SampleLayout::new(&data.events()[0].attr);
    // Name, start address, size and offset in the object (`pgoff`) of each mapping.
    let mut maps = Vec::new();
    let mut chains = Vec::new();
    for record in data.records() {
        let raw = record.expect("a record").raw;
        if raw.kind == RecordKind::SAMPLE {
            let sample = layout.decode(raw.body, Endian::Little).expect("a sample");
            let chain = sample.callchain.expect("a chain");
            chains.push(chain.iter().collect::<Vec<u64>>());
        } else if let Ok(Record::Mmap(map)) = Record::decode(&raw, Endian::Little) {
            let name = String::from_utf8_lossy(map.filename).into_owned();
            maps.push((name, map.start, map.len, map.pgoff));
        }
    }
    let kernel = rperf_wire::PERF_CONTEXT_KERNEL;
    let user = rperf_wire::PERF_CONTEXT_USER;
    let [a, b, c] = ["/a", "/b", "/c"].map(|name| {
        let found = maps.iter().find(|(mapped, ..)| mapped == name);
        found.expect("a mapping").clone()
    });
    assert_eq!(
        chains,
        [
            vec![kernel, 0xffff_ffff_8100_0110, user, a.1 + 0x10, b.1 + 0x20],
            vec![user, 0x7fff_0000_1010]
        ]
    );
    assert!(a.1 + a.2 <= b.1 || b.1 + b.2 <= a.1, "{a:?} {b:?}");
    // The offsets in /a are also its addresses; only /b, the second object, gets other addresses.
    assert_eq!((a.1, a.3, b.3), (0x1000, 0x1000, 0x1000));
    // `h`, the only function of /c, is known up to its sampled address.
    assert_eq!((c.1, c.2), (0x7fff_0000_1000, 0x11));
    let names: Vec<&str> = imported
        .symbol_files
        .iter()
        .map(|file| &*file.name)
        .collect();
    assert_eq!(names, ["[kernel.kallsyms]", "/a", "/b", "/c"]);
    let kallsyms = String::from_utf8_lossy(&imported.symbol_files[0].bytes);
    assert!(kallsyms.contains("ffffffff81000100 T sys\n"), "{kallsyms}");
}

#[test]
fn a_module_stays_separate_from_inlined_functions_of_the_kernel() {
    // In the second text, [n] directly follows the kernel itself, so the inlined function gets an address after [n]. The kernel's
    // range is extended to that address: [n] becomes part of the kernel, [m] does not.
    for modules in [
        "\tffffffffc0000110 m+0x10 ([m])\n",
        "\tffffffff81001110 n+0x10 ([n])\n\tffffffffc0000110 m+0x10 ([m])\n",
    ] {
        let text = format!(
            "sh 1 [000] 1.000001: 5 cycles:\n\tffffffff81000110 inner (inlined)\n\
            \tffffffff81000110 sys+0x10 ([kernel.kallsyms])\n{modules}\n"
        );
        let imported = ScriptText::new(text.as_bytes()).write(Cursor::new(Vec::new()), &[]);
        let files = imported.expect("a recording").symbol_files;
        let kallsyms = String::from_utf8_lossy(&files[0].bytes);
        assert!(
            kallsyms.contains("ffffffffc0000100 t m\t[m]\n") && kallsyms.contains(" T inner\n"),
            "{kallsyms}"
        );
    }
}

#[test]
fn frames_at_the_last_address_are_kept() {
    // `low` is not in the kernel: its [module] is another object, in user space.
    let text = "sh 1 [000] 1.000001: 5 cycles:\n\tffffffffffffffff inner (inlined)\n\
        \tffffffffffffffff end+0x1 ([kernel.kallsyms])\n\t0 low+0x0 ([module])\n\tffffffffffffffff high+0x0 ([module])\n\n";
    let imported = ScriptText::new(text.as_bytes()).write(Cursor::new(Vec::new()), &[]);
    let kallsyms =
        String::from_utf8_lossy(&imported.expect("a recording").symbol_files[0].bytes).into_owned();
    assert!(
        kallsyms.contains("fffffffffffffffe T end\n") && kallsyms.contains(" T inner\n"),
        "{kallsyms}"
    );
}

proptest! {
    #[test]
    fn no_text_panics(text in "(sh 1 \\[000\\] 1\\.000001: (5 cycles:|a:b:)|\t10[0-9a-f]{0,16}| f\\+0x1| \\(/a\\)|\\(inlined\\)|x=1| |\n|[ -~]{0,8}){0,40}") {
        let _ = ScriptText::new(text.as_bytes()).write(Cursor::new(Vec::new()), &[]);
    }

    #[test]
    fn texts_of_tracepoints_are_printed_as_they_were(
        texts in proptest::collection::vec("[a-c]{0,3}(=[0-9a-c =>x+-]{0,9}){0,4}( [a-c]=[0-9a-c >.|%-]{0,7}){0,4}", 1..5)
    ) {
        let trimmed: Vec<&str> = texts.iter().map(|text| text.trim()).collect();
        let (format, reprinted) = printed("a:b", &trimmed);
        prop_assert_eq!(reprinted, trimmed, "{}", format);
    }
}

//! Metadata and packets, compared with expected text and bytes.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::rc::Rc;

use super::fields::{CtfField, CtfType, FieldNames, SampleField};
use super::render::{CtfContent, CtfEvent};
use super::*;

type Files = Rc<RefCell<BTreeMap<u32, Vec<u8>>>>;

struct MemoryFile {
    files: Files,
    cpu: u32,
}

impl Write for MemoryFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.files
            .borrow_mut()
            .entry(self.cpu)
            .or_default()
            .extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes events (time, CPU, content) and returns the stream of each CPU, and the total size in bytes. An event's payload is
/// one byte, its class.
fn streams(events: &[(u64, u32, CtfContent)]) -> (BTreeMap<u32, Vec<u8>>, u64) {
    let mut block = CtfBlock::default();
    for (time, cpu, content) in events {
        if let CtfContent::Event(class) = content {
            block
                .payloads
                .push(u8::try_from(*class).expect("a small number"));
        }
        block.events.push(CtfEvent {
            time: *time,
            cpu: *cpu,
            content: *content,
            end: block.payloads.len(),
        });
    }
    let files = Files::default();
    let opened = Rc::clone(&files);
    let mut writer = CtfWriter::new(|cpu| {
        Ok(MemoryFile {
            files: Rc::clone(&opened),
            cpu,
        })
    });
    writer.add(&block).expect("memory");
    let bytes = writer.finish().expect("memory");
    let files = files.borrow().clone();
    (files, bytes)
}

/// A packet: a header of 52 bytes, and these events. `times` are its start and end, `lost` is the stream's number of lost events
/// so far. The packet has no padding, so the header has the same number of bits twice: for the content and for the packet.
fn packet(times: (u64, u64), lost: u64, cpu: u32, events: &[u8]) -> Vec<u8> {
    let bits = 8 * (52 + events.len() as u64);
    let mut packet = vec![0xC1, 0x1F, 0xFC, 0xC1, 0, 0, 0, 0];
    for word in [times.0, times.1, bits, bits, lost] {
        packet.extend(word.to_le_bytes());
    }
    packet.extend(cpu.to_le_bytes());
    packet.extend(events);
    packet
}

/// An event with the payload that [`streams`] gives it.
fn event(class: u8, time: u64) -> Vec<u8> {
    let mut event = vec![class, 0, 0, 0];
    event.extend(time.to_le_bytes());
    event.push(class);
    event
}

#[test]
fn each_cpu_has_a_stream_of_packets() {
    let (files, bytes) = streams(&[
        // A record without a time, before all others, gets the first time of any CPU.
        (0, 0, CtfContent::Event(3)),
        (100, 1, CtfContent::Event(1)),
        (110, 0, CtfContent::Event(2)),
        // A record that is out of order gets the time of the previous one.
        (105, 0, CtfContent::Event(2)),
    ]);
    let events_of_cpu_0 = [event(3, 100), event(2, 110), event(2, 110)].concat();
    assert_eq!(files[&0], packet((100, 110), 0, 0, &events_of_cpu_0));
    assert_eq!(files[&1], packet((100, 100), 0, 1, &event(1, 100)));
    assert_eq!(bytes, (files[&0].len() + files[&1].len()) as u64);
}

#[test]
fn losses_are_packets_without_events() {
    let (files, _) = streams(&[
        (100, 1, CtfContent::Event(1)),
        (200, 1, CtfContent::Lost(5)),
        (300, 1, CtfContent::Event(1)),
        (400, 1, CtfContent::Lost(2)),
        (400, 0, CtfContent::Lost(3)),
    ]);
    let expected = [
        packet((100, 100), 0, 1, &event(1, 100)),
        packet((200, 200), 5, 1, &[]),
        packet((300, 300), 5, 1, &event(1, 300)),
        packet((400, 400), 7, 1, &[]),
    ];
    assert_eq!(files[&1], expected.concat());
    // Readers compare the counts of lost events in consecutive packets, so an empty packet precedes a loss before any event.
    let expected = [packet((400, 400), 0, 0, &[]), packet((400, 400), 3, 0, &[])];
    assert_eq!(files[&0], expected.concat());
}

#[test]
fn names_are_identifiers_and_unique() {
    let mut names = FieldNames::default();
    let mut unique = |name: &str| {
        let mut field = CtfField::new(name, CtfType::U64, SampleField::Ip);
        field.name_uniquely(&mut names);
        field.name
    };
    assert_eq!(unique("perf_ip"), "perf_ip");
    assert_eq!(unique("perf_ip"), "perf_ip_dupl_1");
    assert_eq!(unique("perf_ip"), "perf_ip_dupl_2");
    assert_eq!(unique("event"), "_event");
    assert_eq!(unique("__probe_ip"), "___probe_ip");
    assert_eq!(unique("u64"), "_u64");
    assert_eq!(unique("a.b-c"), "a_b_c");
    assert_eq!(unique("4th"), "_4th");
    assert_eq!(unique(""), "_");
}

#[test]
fn metadata_have_escaped_text_the_clock_offset_and_record_events() {
    let with_records = true;
    let layout = CtfLayout::new(
        rperf_perfdata::Metadata {
            endian: rperf_wire::Endian::Little,
            events: &[],
            features: &rperf_perfdata::Features::none(rperf_wire::Endian::Little),
            is_pipe: false,
        },
        with_records,
    );
    let environment = CtfEnvironment {
        properties: vec![("host", "a\"b\\c\nd\u{1}".to_owned())],
        clock_offset: -1,
        exporter: "rperf 1",
    };
    let mut text = Vec::new();
    write_metadata(&layout, &environment, &mut text).expect("memory");
    let text = String::from_utf8(text).expect("text");
    assert!(text.starts_with("/* CTF 1.8 */\n"), "{text}");
    assert!(text.contains("\thost = \"a\\\"b\\\\c\\nd?\";\n"), "{text}");
    assert!(
        text.contains("\toffset_s = -1;\n\toffset = 999999999;\n"),
        "{text}"
    );
    let comm = "event {\n\tname = \"perf_comm\";\n\tid = 0;\n\tstream_id = 0;\n\tfields := struct {\n\
                \t\ts32 pid;\n\t\ts32 tid;\n\t\tutf8 comm;\n\t};\n};\n";
    assert!(text.contains(comm), "{text}");
}

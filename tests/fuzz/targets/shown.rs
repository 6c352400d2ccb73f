//! Recordings as text: any bytes are refused, or their header, events, dump and every field of every sample are written.

#![no_main]

use std::io;

use libfuzzer_sys::fuzz_target;
use rperf_lines::{BranchFlags, LineFields, ResolvedAddress, SampleLine, TracepointPrinter};
use rperf_perfdata::PerfData;
use rperf_replay::{OrderedRecord, RecordContent, Replay, Sample};
use rperf_resolve::Resolver;
use rperf_symbol::{MemoryFiles, SearchPaths};
use rperf_view::dump::{Dump, DumpContent, SampleDump, write_thread};
use rperf_view::evlist::{EvlistDetail, EvlistOptions, write_events};
use rperf_view::header::{HeaderOptions, write_header};
use rperf_view::script::{
    Architecture, BlockJoiner, Clock, ScriptBlock, ScriptEvent, ScriptLayout, ScriptStyle,
    TimeOfDay, write_record,
};
use rperf_wire::Record;

/// Offset of local time from UTC in seconds, at any time.
const ZONE_OFFSET: i64 = 3600;

fuzz_target!(|bytes: &[u8]| {
    let Ok(data) = PerfData::parse(bytes) else {
        return;
    };
    if data.is_compressed() {
        let mut records = Vec::new();
        // The recording is one file, not a directory: it has no other parts. `summary`: the number of compressed records, and the
        // first error.
        if let Ok(summary) = data.unpack(&[], &mut records) {
            write_texts(&data.with_records(&records, summary), bytes).expect("memory");
        }
        return;
    }
    write_texts(&data, bytes).expect("memory");
});

fn write_texts(data: &PerfData<'_>, file: &[u8]) -> io::Result<()> {
    let mut out = Vec::new();
    for full in [false, true] {
        let options = HeaderOptions {
            // The modification time of the file.
            captured: 1_700_000_000,
            zone: &|_| ZONE_OFFSET,
            full,
        };
        write_header(&mut out, data, &options)?;
    }
    for detail in [
        EvlistDetail::Name,
        EvlistDetail::Frequency,
        EvlistDetail::Attr,
    ] {
        let options = EvlistOptions {
            detail,
            groups: true,
            trace_fields: None,
        };
        write_events(&mut out, data, file, &options)?;
    }
    let Ok(replay) = Replay::open(data) else {
        return Ok(());
    };
    write_dump(&replay, &mut out)?;
    write_samples(&replay, &mut out);
    Ok(())
}

fn write_dump(replay: &Replay<'_>, out: &mut Vec<u8>) -> io::Result<()> {
    let mut dump = Dump::new(replay.data().metadata(), "perf.data");
    dump.write_start(out)?;
    for OrderedRecord {
        record,
        content: recorded,
        ..
    } in replay.ordered_records()
    {
        // The text is not checked: the target finds panics.
        out.clear();
        let content = match &recorded {
            RecordContent::Sample(sample) => {
                match replay.data().events().get(sample.event.0 as usize) {
                    Some(event) => DumpContent::Sample(SampleDump {
                        wire: &sample.wire,
                        attr: &event.attr,
                        period: sample.period,
                        comm: "comm",
                        object: "object",
                    }),
                    None => DumpContent::UnknownEvent,
                }
            }
            RecordContent::UnknownEvent => DumpContent::UnknownEvent,
            RecordContent::Broken(error) => DumpContent::Broken(error),
            RecordContent::Kernel {
                body,
                record: non_sample,
            } => DumpContent::Kernel {
                body,
                trailer: non_sample.id,
            },
            _ => DumpContent::User,
        };
        dump.write(out, &record, &content)?;
        if let DumpContent::Sample(sample) = &content {
            write_thread(out, sample)?;
        }
        if let Ok(decoded) = Record::decode(&record.raw, replay.data().endian()) {
            write_record(&decoded, record.raw.kind, record.raw.misc, out);
        }
    }
    Ok(())
}

/// Prints the samples with all fields.
fn write_samples(replay: &Replay<'_>, out: &mut Vec<u8>) {
    let data = replay.data();
    let files = MemoryFiles::new();
    let resolver = Resolver::new(replay.world(), &files, SearchPaths::new(None));
    let payloads = TracepointPrinter::new(data.metadata()).unwrap_or_default();
    let time_of_day = TimeOfDay {
        wall: 1_700_000_000_000_000_000,
        clock: 1000,
        zone: |_| ZONE_OFFSET,
    };
    let machine = data.features().arch().unwrap_or_default();
    // Some options depend on the number of events or on the index of the event, so that all of their values are tried.
    let style = ScriptStyle {
        event_name_width: 20,
        full_paths: true,
        brief: false,
        nanoseconds: data.events().len() % 2 == 0,
        clock: Clock::SinceBefore,
        time_of_day: Some(time_of_day),
        architecture: Architecture::from_machine(&machine),
    };
    let layouts = data.events().iter().enumerate().map(|(number, event)| {
        let event = ScriptEvent {
            name: &event.name,
            fields: LineFields::of(&LineFields::ALL),
            shows_callchains: number % 2 == 0,
            weight_parts: number % 3 == 0,
            bpf_output: number % 2 == 1,
        };
        ScriptLayout::new(&event, style)
    });
    let layouts: Vec<ScriptLayout> = layouts.collect();
    // Fills in the times since the previous sample, which a block alone does not contain.
    let mut join = BlockJoiner::new(Clock::SinceBefore, style.nanoseconds);
    for OrderedRecord { content, .. } in replay.ordered_records() {
        let RecordContent::Sample(sample) = &content else {
            continue;
        };
        let Some(layout) = layouts.get(sample.event.0 as usize) else {
            continue;
        };
        out.clear();
        let mut block = ScriptBlock::default();
        write_sample(layout, sample, &mut block);
        let raw = sample.wire.raw.unwrap_or_default();
        payloads.write(sample.event, raw, &resolver, &mut block.text);
        out.extend(join.join(&block));
    }
}

fn write_sample(layout: &ScriptLayout, sample: &Sample<'_>, block: &mut ScriptBlock) {
    let line = SampleLine {
        comm: "comm",
        pid: sample.pid,
        tid: sample.tid,
        cpu: sample.cpu,
        time: sample.wire.time.unwrap_or(u64::MAX),
        period: sample.period,
        misc: sample.misc,
        // Any bits: the period is a number of the input.
        branch_flags: BranchFlags(sample.period as u32),
    };
    let resolved = |address: Option<u64>| ResolvedAddress::unknown(address.unwrap_or_default());
    layout.start(&line, block);
    let named = true;
    layout.data_address(&resolved(sample.wire.addr), named, &mut block.text);
    layout.leading_fields(&sample.wire, Some("/cgroup"), block);
    layout.address(&resolved(sample.wire.ip), &mut block.text);
    layout.registers(&sample.wire, &mut block.text);
    for entry in sample
        .wire
        .branch_stack
        .iter()
        .flat_map(|stack| stack.iter())
    {
        let (from, to) = (
            ResolvedAddress::unknown(entry.from),
            ResolvedAddress::unknown(entry.to),
        );
        layout.branch(&from, &to, &entry, &mut block.text);
    }
    layout.bpf_output(&sample.wire, &mut block.text);
    layout.page_fields(&sample.wire, &mut block.text);
    layout.metric(&line, sample.event.0 as usize, block);
    block.text.push(b'\n');
}

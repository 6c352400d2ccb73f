//! `-D` of script and report: every record as stored in the file.

use std::io::{self, Write};

use clap::ArgMatches;
use rperf_replay::{NonSampleRecord, OrderedRecord, RecordContent, Replay, Sample};
use rperf_view::dump::{Dump, DumpContent, SampleDump, write_thread};
use rperf_wire::CpuMode;

use super::options::flag;

/// Whether `-D` was given.
pub(super) fn is_wanted(matches: &ArgMatches) -> bool {
    flag(matches, "dump-raw-trace") == Some(true)
}

/// What a dumped record is to a command.
pub(crate) enum DumpSuffix<'a> {
    /// A sample, once for each of its events.
    Sample(&'a Sample<'a>),
    /// Any other record.
    Record(&'a NonSampleRecord<'a>),
}

/// Dumps all records in perf's delivery order; `behind` writes what follows each.
pub(super) fn write<W: Write>(
    out: &mut W,
    replay: &Replay<'_>,
    mut dump: Dump<'_>,
    mut after: impl FnMut(&mut W, DumpSuffix<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let mut turns = replay.ordered_records();
    if !dump.is_sorted() {
        turns = turns.in_file_order();
    }
    for OrderedRecord { record, what, .. } in turns {
        let content = content(replay, &what);
        dump.write(out, &record, &content)?;
        match (&what, &content) {
            (RecordContent::Sample(sample), DumpContent::Sample(dumped)) => {
                let mut written = Ok(());
                replay.deliver(sample, |sample| {
                    if written.is_ok() {
                        written = write_thread(out, dumped)
                            .and_then(|()| after(out, DumpSuffix::Sample(sample)));
                    }
                });
                written?;
            }
            (RecordContent::Kernel { side, .. } | RecordContent::User(side), _) => {
                after(out, DumpSuffix::Record(side))?;
            }
            _ => {}
        }
    }
    out.flush()
}

/// Returns the decoded content of a record.
fn content<'a>(replay: &'a Replay<'_>, what: &'a RecordContent<'_>) -> DumpContent<'a> {
    match what {
        RecordContent::Sample(sample) => {
            match replay.data().events().get(sample.event.0 as usize) {
                Some(event) => DumpContent::Sample(SampleDump {
                    wire: &sample.wire,
                    attr: &event.attr,
                    period: sample.period,
                    comm: comm(replay, sample),
                    object: object(replay, sample),
                }),
                None => DumpContent::UnknownEvent,
            }
        }
        RecordContent::UnknownEvent => DumpContent::UnknownEvent,
        RecordContent::Broken(error) => DumpContent::Broken(error),
        RecordContent::Kernel { body, side } => DumpContent::Kernel {
            body,
            trailer: side.id,
        },
        _ => DumpContent::User,
    }
}

fn comm<'a>(replay: &'a Replay<'_>, sample: &Sample<'_>) -> &'a str {
    let world = replay.world();
    world.comm(world.comm_at(sample.tid, sample.order))
}

/// Returns the file of the sample's address.
fn object<'a>(replay: &'a Replay<'_>, sample: &Sample<'_>) -> &'a str {
    let world = replay.world();
    let address = sample.wire.ip.unwrap_or_default();
    let (machine, mode) = (sample.machine(), sample.cpu_mode());
    let found = world.lookup(machine, mode, sample.pid, sample.order, address);
    match (found, mode) {
        (Some(found), _) => &world.dso(world.mapping(found).dso).long_name,
        (None, CpuMode::Kernel | CpuMode::User) => "<not found>",
        (None, _) => "[hypervisor]",
    }
}

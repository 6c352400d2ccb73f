//! `-D` (`--dump-raw-trace`): every record as stored in the file.

use std::io::{self, Write};

use clap::ArgMatches;
use rperf_replay::{NonSampleRecord, OrderedRecord, RecordContent, Replay, Sample};
use rperf_view::dump::{Dump, DumpContent, SampleDump, write_thread};
use rperf_wire::{CpuMode, RecordKind};

use super::error::CliError;
use super::options::flag;
use super::shared::analysis::Analysis;

/// Types of records that perf's report, diff, lock and sched mark as unhandled. diff marks further types, which are not here.
pub(crate) const UNHANDLED_RECORDS: &[RecordKind] = &[
    RecordKind::THROTTLE,
    RecordKind::UNTHROTTLE,
    RecordKind::AUXTRACE_ERROR,
    RecordKind::THREAD_MAP,
    RecordKind::CPU_MAP,
    RecordKind::STAT_CONFIG,
    RecordKind::STAT,
    RecordKind::STAT_ROUND,
];

/// Whether `-D` was given.
pub(super) fn is_wanted(matches: &ArgMatches) -> bool {
    flag(matches, "dump-raw-trace") == Some(true)
}

/// Refuses `-D` with `--json`: both print on the standard output. `hint` is the hint of the error.
///
/// # Errors
///
/// Status 129.
pub(crate) fn refuse_with_json(matches: &ArgMatches, hint: &str) -> Result<(), CliError> {
    match is_wanted(matches) && flag(matches, "json") == Some(true) {
        true => Err(CliError::usage("--json and -D exclude each other").hint(hint)),
        false => Ok(()),
    }
}

/// If `-D` was given, prints all records on the standard output, or in the pager that is enabled for `command`.
///
/// # Errors
///
/// Those of the output.
pub(crate) fn print(
    analysis: &Analysis<'_>,
    matches: &ArgMatches,
    command: &str,
) -> Result<(), CliError> {
    if !is_wanted(matches) {
        return Ok(());
    }
    let path = analysis.input.path.to_string_lossy();
    let dump = Dump::new(analysis.metadata(), &path)
        .with_unhandled(UNHANDLED_RECORDS)
        .without_threads();
    analysis.end_progress();
    analysis.context.paginate(command)?;
    Ok(write_whole(analysis, dump)?)
}

/// Writes the start of a dump and all records on the standard output.
///
/// # Errors
///
/// Those of the output.
pub(crate) fn write_whole(analysis: &Analysis<'_>, dump: Dump<'_>) -> io::Result<()> {
    let out = &mut analysis.context.stdout();
    dump.write_start(out)?;
    // No text follows a record.
    write(out, &analysis.replay, dump, |_, _| Ok(()))
}

/// A dumped record, passed to a command that adds text after the record.
pub(crate) enum DumpedRecord<'a> {
    /// A sample derived from the dumped one by [`Replay::deliver`].
    Sample(&'a Sample<'a>),
    /// Any other record.
    Record(&'a NonSampleRecord<'a>),
}

/// Dumps all records in perf's delivery order, or in file order if `dump` is not sorted. `after` writes the text that follows
/// a decoded record. For a sample, it is called once for each sample that [`Replay::deliver`] derives from it.
pub(super) fn write<W: Write>(
    out: &mut W,
    replay: &Replay<'_>,
    mut dump: Dump<'_>,
    mut after: impl FnMut(&mut W, DumpedRecord<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let shows_threads = dump.shows_threads();
    let mut records = replay.ordered_records();
    if !dump.is_sorted() {
        records = records.in_file_order();
    }
    for OrderedRecord {
        record, content, ..
    } in records
    {
        let dumped = dump_content(replay, &content);
        dump.write(out, &record, &dumped)?;
        match (&content, &dumped) {
            (RecordContent::Sample(sample), DumpContent::Sample(dumped_sample)) => {
                let mut result = Ok(());
                replay.deliver(sample, |sample| {
                    if result.is_ok() {
                        // The line with the sample's thread and object is before the text of `after`.
                        let thread = match shows_threads {
                            true => write_thread(out, dumped_sample),
                            false => Ok(()),
                        };
                        result = thread.and_then(|()| after(out, DumpedRecord::Sample(sample)));
                    }
                });
                result?;
            }
            // `Kernel` and `User` are the types of the kernel and of the recorder, not CPU modes.
            (RecordContent::Kernel { record, .. } | RecordContent::User(record), _) => {
                after(out, DumpedRecord::Record(record))?;
            }
            _ => {}
        }
    }
    out.flush()
}

/// Returns the decoded content of a record, for the dump.
fn dump_content<'a>(replay: &'a Replay<'_>, content: &'a RecordContent<'_>) -> DumpContent<'a> {
    match content {
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
        RecordContent::Kernel { body, record } => DumpContent::Kernel {
            body,
            trailer: record.id,
        },
        _ => DumpContent::User,
    }
}

/// Returns the name of the sample's thread at the sample's time, from the World (the processes and mappings, by time).
fn comm<'a>(replay: &'a Replay<'_>, sample: &Sample<'_>) -> &'a str {
    let world = replay.world();
    world.comm(world.comm_at(sample.tid, sample.order))
}

/// Returns the path of the object that contains the sample's address, or perf's text if there is none.
fn object<'a>(replay: &'a Replay<'_>, sample: &Sample<'_>) -> &'a str {
    let world = replay.world();
    let address = sample.wire.ip.unwrap_or_default();
    let (machine, mode) = (sample.machine(), sample.cpu_mode());
    let mapping = world.lookup(machine, mode, sample.pid, sample.order, address);
    match (mapping, mode) {
        (Some(mapping), _) => &world.dso(world.mapping(mapping).dso).long_name,
        (None, CpuMode::Kernel | CpuMode::User) => "<not found>",
        (None, _) => "[hypervisor]",
    }
}

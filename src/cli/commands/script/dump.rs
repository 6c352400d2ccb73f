//! `script -D`: dumps every record, followed by the text that `script` prints for it.

use std::io::Write as _;

use clap::ArgMatches;
use rperf_replay::Render as _;
use rperf_view::dump::Dump;
use rperf_view::script::{BlockJoiner, ScriptBlock};
use rperf_wire::RecordKind;

use super::counts::{CountRecord, CountTable, are_counted};
use super::text::{SampleText, TextBuffers};
use crate::cli::error::CliError;
use crate::cli::options::flag;
use crate::cli::record_dump::{self, DumpedRecord};
use crate::cli::shared::analysis::Analysis;

/// Whether a dump is requested: in the order of delivery, or in that of the file.
pub(super) fn is_wanted(matches: &ArgMatches) -> bool {
    record_dump::is_wanted(matches) || is_unsorted(matches)
}

/// Whether a dump in file order is requested.
pub(super) fn is_unsorted(matches: &ArgMatches) -> bool {
    flag(matches, "dump-unsorted-raw-trace") == Some(true)
}

/// Dumps all records, in the order in which perf delivers them, or in file order.
pub(super) fn print(
    analysis: &Analysis<'_>,
    text: &SampleText<'_, '_>,
    mut join: BlockJoiner,
    unsorted: bool,
) -> Result<(), CliError> {
    let Analysis {
        context,
        input,
        replay,
        ..
    } = analysis;
    let path = input.path.to_string_lossy();
    // As in perf, whose `script` does not process READ records, the dump marks them as unhandled.
    let mut dump = Dump::new(replay.data().metadata(), &path).with_unhandled(&[RecordKind::READ]);
    if unsorted {
        dump = dump.in_file_order();
    }
    let mut scratch = TextBuffers::default();
    let events = replay.data().events();
    // The counts of a recording of `stat record`: none of its events is sampled.
    let mut counts = are_counted(events).then(CountTable::default);
    // The World: processes and mappings by time.
    let world = replay.world();
    let out = &mut context.stdout();
    dump.write_start(out)?;
    record_dump::write(out, replay, dump, |out, dumped| {
        let mut block = ScriptBlock::default();
        match dumped {
            DumpedRecord::Sample(sample) => text.render(world, sample, &mut scratch, &mut block),
            DumpedRecord::Record(record) => {
                // Records that `script` prints among the samples, such as those of `--show-mmap-events`.
                if text.wanted().contains(&record.raw.kind) {
                    text.record(world, record, &mut scratch, &mut block);
                }
                if let Some(counts) = &mut counts {
                    let record = CountRecord {
                        raw: &record.raw,
                        position: record.order.position,
                        endian: replay.data().endian(),
                        events,
                    };
                    counts.process_and_write(&record, &text.plan.filter, &mut block.text)?;
                }
            }
        }
        // The block's text has gaps, such as times, which may depend on earlier records: `join` fills them.
        out.write_all(join.join(&block))
    })?;
    Ok(())
}

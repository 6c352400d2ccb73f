//! `script -D`: every record as it stands in the file, samples with their text behind.

use std::io::Write as _;

use clap::ArgMatches;
use rperf_replay::{Render as _, Replay};
use rperf_view::dump::Dump;
use rperf_view::script::{Block, Join};
use rperf_wire::RecordKind;

use super::text::{SampleText, Scratch};
use crate::cli::context::Context;
use crate::cli::dump::{self, Behind};
use crate::cli::error::CliError;
use crate::cli::input::Input;
use crate::cli::options::flag;

/// Whether it is asked for, in either order.
pub(super) fn is_wanted(matches: &ArgMatches) -> bool {
    dump::is_wanted(matches) || is_unsorted(matches)
}

/// Whether it is asked for in the order of the file.
pub(super) fn is_unsorted(matches: &ArgMatches) -> bool {
    flag(matches, "dump-unsorted-raw-trace") == Some(true)
}

/// Dumps all records, in the order in which perf delivers them, or as they stand.
pub(super) fn print(
    context: &Context,
    input: &Input,
    replay: &Replay<'_>,
    text: &SampleText<'_, '_>,
    (mut join, unsorted): (Join, bool),
) -> Result<(), CliError> {
    let path = input.path.to_string_lossy();
    let mut records = Dump::new(replay.data().described(), &path).passing_over(&[RecordKind::READ]);
    if unsorted {
        records = records.as_they_stand();
    }
    let mut scratch = Scratch::default();
    let world = replay.world();
    let out = &mut context.stdout();
    records.write_start(out)?;
    dump::write(out, replay, records, |out, behind| {
        let mut block = Block::default();
        match behind {
            Behind::Sample(sample) => text.render(world, sample, &mut scratch, &mut block),
            Behind::Record(side) => {
                if text.wanted().contains(&side.raw.kind) {
                    text.record(world, side, &mut scratch, &mut block);
                }
            }
        }
        out.write_all(join.join(&block))
    })?;
    Ok(())
}

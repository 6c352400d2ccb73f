//! `script -D`: every record as it stands in the file, samples with their text behind.

use std::io::Write as _;

use rperf_replay::{Render as _, Replay, What};
use rperf_view::dump::Dump;
use rperf_view::script::{Block, Join};

use super::text::{SampleText, Scratch};
use crate::cli::context::Context;
use crate::cli::dump;
use crate::cli::error::CliError;
use crate::cli::input::Input;

pub(super) use crate::cli::dump::is_wanted;

/// Dumps all records, in the order in which perf delivers them.
pub(super) fn print(
    context: &Context,
    input: &Input,
    replay: &Replay<'_>,
    text: &SampleText<'_, '_>,
    mut join: Join,
) -> Result<(), CliError> {
    let path = input.path.to_string_lossy();
    let records = Dump::new(replay.data().described(), &path);
    let mut scratch = Scratch::default();
    let world = replay.world();
    dump::write(&mut context.stdout(), replay, records, |out, kind, what| {
        let mut block = Block::default();
        match what {
            What::Sample(sample) => text.render(world, sample, &mut scratch, &mut block),
            What::Kernel { side, .. } | What::User(side) => {
                if text.wanted().contains(&kind) {
                    text.record(world, side, &mut scratch, &mut block);
                }
            }
            _ => return Ok(()),
        }
        out.write_all(join.join(&block))
    })?;
    Ok(())
}

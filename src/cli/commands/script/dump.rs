//! `script -D`: every record as it stands in the file, samples with their text behind.

use std::io::Write as _;

use clap::ArgMatches;
use rperf_replay::{Render as _, Replay, Sample, Turn, What};
use rperf_view::dump::{Content, Dump, SampleDump};
use rperf_view::script::{Block, Join};
use rperf_wire::CpuMode;

use super::text::{SampleText, Scratch};
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::input::Input;
use crate::cli::options::flag;

/// Whether it is asked for.
pub(super) fn is_wanted(matches: &ArgMatches) -> bool {
    flag(matches, "dump-raw-trace") == Some(true)
}

/// Dumps all records, in the order in which perf delivers them.
pub(super) fn print(
    context: &Context,
    input: &Input,
    replay: &Replay<'_>,
    text: &SampleText<'_, '_>,
    mut join: Join,
) -> Result<(), CliError> {
    let path = input.path.to_string_lossy();
    let mut dump = Dump::new(replay.data().described(), &path);
    let mut scratch = Scratch::default();
    let out = &mut context.stdout();
    dump.write_start(out)?;
    let mut turns = replay.turns();
    if !dump.is_sorted() {
        turns = turns.as_they_stand();
    }
    for Turn { record, what, .. } in turns {
        dump.write(out, &record, &content(replay, &what))?;
        let mut block = Block::default();
        let world = replay.world();
        match &what {
            What::Sample(sample) => text.render(world, sample, &mut scratch, &mut block),
            What::Kernel { side, .. } | What::User(side) => {
                if text.wanted().contains(&record.raw.kind) {
                    text.record(world, side, &mut scratch, &mut block);
                }
            }
            _ => continue,
        }
        out.write_all(join.join(&block))?;
    }
    out.flush()?;
    Ok(())
}

/// What is known of a record beside its bytes.
fn content<'a>(replay: &'a Replay<'_>, what: &'a What<'_>) -> Content<'a> {
    match what {
        What::Sample(sample) => match replay.data().events().get(sample.event.0 as usize) {
            Some(event) => Content::Sample(SampleDump {
                wire: &sample.wire,
                attr: &event.attr,
                period: sample.period,
                comm: comm(replay, sample),
                object: object(replay, sample),
            }),
            None => Content::Stranger,
        },
        What::Stranger => Content::Stranger,
        What::Broken(error) => Content::Broken(error),
        What::Kernel { body, side } => Content::Kernel {
            body,
            trailer: side.id,
        },
        _ => Content::User,
    }
}

fn comm<'a>(replay: &'a Replay<'_>, sample: &Sample<'_>) -> &'a str {
    let world = replay.world();
    world.comm(world.comm_at(sample.pid, sample.tid, sample.order))
}

/// The file that the sample's address is in.
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

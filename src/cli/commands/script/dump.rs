//! `script -D`: every record as it stands in the file, samples with their text behind.

use std::io::Write as _;

use clap::ArgMatches;
use rperf_replay::{Render as _, Replay, Sample, Turn, What};
use rperf_resolve::Resolver;
use rperf_view::dump::{Content, Dump, SampleDump};
use rperf_view::script::{Block, Join};
use rperf_wire::CpuMode;

use super::plan::Plan;
use super::settings::Settings;
use super::text::{SampleText, Scratch};
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::files::DiskFiles;
use crate::cli::findings::conclude;
use crate::cli::input::{Input, Opened};
use crate::cli::options::flag;
use crate::cli::symbols::{own_vdso, search_paths};

/// Whether it is asked for.
pub(super) fn is_wanted(matches: &ArgMatches) -> bool {
    flag(matches, "dump-raw-trace") == Some(true)
}

/// Dumps a recording. A stream is read to its end first.
pub(super) fn print(
    context: &Context,
    opened: Opened,
    settings: &Settings,
) -> Result<(), CliError> {
    let input = match opened {
        Opened::Whole(input) => input,
        Opened::Stream(stream) => stream.spool(context)?,
    };
    let data = input.parse(context)?;
    context.paginate("script")?;
    let plan = Plan::new(context, &input.path, data.described(), settings)?;
    let replay = Replay::open(&data)?;
    let join = Join::new(settings.clock, settings.nanoseconds);
    records(context, &input, &replay, &plan, join)?;
    conclude(&input.path, &replay.diagnostics(), context)
}

fn records(
    context: &Context,
    input: &Input,
    replay: &Replay<'_>,
    plan: &Plan,
    mut join: Join,
) -> Result<(), CliError> {
    let described = replay.data().described();
    let paths = search_paths(context, described.features);
    let resolver = Resolver::new(replay.world(), &DiskFiles, paths).with_vdso(own_vdso());
    let text = SampleText::new(&resolver, plan);
    let mut scratch = Scratch::default();
    let path = input.path.to_string_lossy();
    let mut dump = Dump::new(described, &path);
    let out = &mut context.stdout();
    dump.write_start(out)?;
    let mut turns = replay.turns();
    if !dump.is_sorted() {
        turns = turns.as_they_stand();
    }
    for Turn { record, what, .. } in turns {
        let content = content(replay, &what);
        dump.write(out, &record, &content)?;
        if let What::Sample(sample) = &what {
            let mut block = Block::default();
            text.render(replay.world(), sample, &mut scratch, &mut block);
            out.write_all(join.join(&block))?;
        }
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
        What::Kernel { body, trailer } => Content::Kernel {
            body,
            trailer: *trailer,
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

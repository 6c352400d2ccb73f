//! `-D` of script and report: every record as it stands in the file.

use std::io::{self, Write};

use clap::ArgMatches;
use rperf_replay::{Replay, Sample, Turn, What};
use rperf_view::dump::{Content, Dump, SampleDump};
use rperf_wire::{CpuMode, RecordKind};

use super::options::flag;

/// Whether it is asked for.
pub(super) fn is_wanted(matches: &ArgMatches) -> bool {
    flag(matches, "dump-raw-trace") == Some(true)
}

/// Dumps all records, in the order in which perf delivers them; `behind` writes what follows each.
pub(super) fn write<W: Write>(
    out: &mut W,
    replay: &Replay<'_>,
    mut dump: Dump<'_>,
    mut behind: impl FnMut(&mut W, RecordKind, &What<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let mut turns = replay.turns();
    if !dump.is_sorted() {
        turns = turns.as_they_stand();
    }
    for Turn { record, what, .. } in turns {
        dump.write(out, &record, &content(replay, &what))?;
        behind(out, record.raw.kind, &what)?;
    }
    out.flush()
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

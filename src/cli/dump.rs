//! `-D` of script and report: every record as it stands in the file.

use std::io::{self, Write};

use clap::ArgMatches;
use rperf_replay::{Replay, Sample, SideRecord, Turn, What};
use rperf_view::dump::{Content, Dump, SampleDump, write_thread};
use rperf_wire::CpuMode;

use super::options::flag;

/// Whether it is asked for.
pub(super) fn is_wanted(matches: &ArgMatches) -> bool {
    flag(matches, "dump-raw-trace") == Some(true)
}

/// What a dumped record means to a command.
pub(crate) enum Behind<'a> {
    /// A sample, once for each event that it stands for.
    Sample(&'a Sample<'a>),
    /// Any other record.
    Record(&'a SideRecord<'a>),
}

/// Dumps all records, in the order in which perf delivers them; `behind` writes what follows each.
pub(super) fn write<W: Write>(
    out: &mut W,
    replay: &Replay<'_>,
    mut dump: Dump<'_>,
    mut behind: impl FnMut(&mut W, Behind<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let mut turns = replay.turns();
    if !dump.is_sorted() {
        turns = turns.as_they_stand();
    }
    for Turn { record, what, .. } in turns {
        let content = content(replay, &what);
        dump.write(out, &record, &content)?;
        match (&what, &content) {
            (What::Sample(sample), Content::Sample(dumped)) => {
                let mut written = Ok(());
                replay.deliver(sample, |sample| {
                    if written.is_ok() {
                        written = write_thread(out, dumped)
                            .and_then(|()| behind(out, Behind::Sample(sample)));
                    }
                });
                written?;
            }
            (What::Kernel { side, .. } | What::User(side), _) => {
                behind(out, Behind::Record(side))?;
            }
            _ => {}
        }
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
